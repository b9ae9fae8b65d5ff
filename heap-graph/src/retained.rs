//! What several nodes keep alive together: by class, or any selection.

use hashbrown::HashMap;

use crate::dominators::DominatorTree;
use crate::graph::{Graph, Node, NodeIndex};
use crate::text::Text;
use crate::walk::BreadthFirst;

/// What the nodes of one class keep alive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClassSizes<'a> {
    /// The class, or the type of nodes without a class.
    pub class: Text<'a>,
    /// Nodes.
    pub count: u64,
    /// Bytes of the nodes themselves.
    pub shallow_size: u128,
    /// Bytes of all that nodes of the class dominate, each byte once.
    pub retained_size: u128,
}

/// Sizes by class, the class that retains most first; equals in the order in which a walk meets them.
///
/// The retained sizes of different classes overlap, and add up to more than the heap. The root is left out.
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
    // How many nodes of each class are on the way from the root.
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

/// What a selection of nodes keeps alive: all that the root reaches through them only.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetainedSet<'a> {
    /// The nodes, those of the selection that can be reached included, in the order of the graph.
    pub nodes: Vec<Node<'a>>,
    /// Their bytes.
    pub bytes: u128,
}

impl<'a> RetainedSet<'a> {
    /// The retained set of a selection.
    pub fn new(graph: &'a Graph, selection: &[NodeIndex]) -> Self {
        let mut selected = vec![false; graph.node_count()];
        selection.iter().for_each(|node| selected[node.get()] = true);
        // 0 if never met, 1 if met, 2 if met without the selection.
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
