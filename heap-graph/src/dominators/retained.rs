//! What several nodes keep alive together: the nodes of a class, or any selection.

use hashbrown::HashMap;

use super::DominatorTree;
use crate::graph::{Graph, Node, NodeIndex, Text};
use crate::walk::BreadthFirst;

/// The sizes of the nodes of one class.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClassSizes<'a> {
    /// The class, or the type of nodes without a class.
    pub class: Text<'a>,
    /// The number of nodes.
    pub count: u64,
    /// Bytes of the nodes themselves.
    pub shallow_size: u128,
    /// Bytes of all that nodes of the class dominate, each byte once.
    pub retained_size: u128,
}

/// Sizes by class, the class that retains most first; equal ones in the order of the graph's kinds.
///
/// The retained sizes of different classes overlap, so that their sum may exceed the heap. The root does not count.
pub fn sizes_by_class<'a>(tree: &DominatorTree<'a>) -> Vec<ClassSizes<'a>> {
    let graph = tree.graph();
    let mut places = HashMap::new();
    let mut classes: Vec<ClassSizes<'a>> = Vec::new();
    let of_kind: Vec<usize> = graph
        .kinds()
        .iter()
        .map(|kind| {
            let name = kind.class_name.unwrap_or(kind.type_name);
            *places.entry(name).or_insert_with(|| {
                classes.push(ClassSizes {
                    class: graph.text(name),
                    count: 0,
                    shallow_size: 0,
                    retained_size: 0,
                });
                classes.len() - 1
            })
        })
        .collect();
    let class_of = |node: Node<'_>| of_kind[graph.kinds_of()[node.index().get()] as usize];
    // The number of nodes of each class on the way from the root.
    let mut open = vec![0_u32; classes.len()];
    let mut stack = vec![tree.immediately_dominated(NodeIndex::ROOT)];
    let mut path = Vec::new();
    while let Some(children) = stack.last_mut() {
        let Some(node) = children.next() else {
            stack.pop();
            if let Some(class) = path.pop() {
                open[class] -= 1;
            }
            continue;
        };
        let place = class_of(node);
        let class = &mut classes[place];
        class.count += 1;
        class.shallow_size += u128::from(node.shallow_size());
        if open[place] == 0 {
            class.retained_size += tree.retained_size(node.index()).unwrap_or_default();
        }
        open[place] += 1;
        path.push(place);
        stack.push(tree.immediately_dominated(node.index()));
    }
    classes.retain(|class| class.count > 0);
    classes.sort_by_key(|class| core::cmp::Reverse(class.retained_size));
    classes
}

/// What a selection of nodes keeps alive: all nodes that the root reaches only through them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetainedSet<'a> {
    /// The nodes in the order of the graph, with the reachable ones of the selection itself.
    pub nodes: Vec<Node<'a>>,
    /// The bytes of the nodes.
    pub bytes: u128,
}

impl<'a> RetainedSet<'a> {
    /// The retained set of a selection.
    pub fn new(graph: &'a Graph, selection: &[NodeIndex]) -> Self {
        let mut selected = vec![false; graph.node_count()];
        selection.iter().for_each(|node| selected[node.get()] = true);
        // 0 for a node that no walk meets, 1 for one met only through the selection, 2 for any other.
        let mut met = vec![0_u8; graph.node_count()];
        for (round, avoids) in [(1, false), (2, true)] {
            if avoids && selected[0] {
                break;
            }
            met[0] = round;
            let mut walk = BreadthFirst::new(graph);
            while let Some(from) = walk.next() {
                for to in graph.referents(from) {
                    if !(avoids && selected[*to as usize]) && walk.arrive(*to) {
                        met[*to as usize] = round;
                    }
                }
            }
        }
        let nodes: Vec<_> = graph.nodes().filter(|node| met[node.index().get()] == 1).collect();
        let bytes = nodes.iter().map(|node| u128::from(node.shallow_size())).sum();
        Self { nodes, bytes }
    }
}
