//! The dominator tree: which node keeps which alive alone, and how many bytes each retains.

mod climb;
mod fetch;
mod semi_nca;

pub use fetch::{DominatorTreeNode, FetchOptions, Fetched};

use core::cmp::Reverse;
use core::ops::{AddAssign, Range};
use std::sync::Arc;

use crate::graph::{Graph, Node, NodeIndex};
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{Cancelled, Progress, Steps, chunks};

const NONE: u32 = u32::MAX;
/// How often each node is gone through, as far as progress counts it.
const STEPS: usize = 5;
/// Children that are many for one node.
const LONG: usize = 64;

/// Immediate dominators, retained sizes, and the nodes that each node immediately dominates.
///
/// A node dominates another if every path from the root to the other goes through it; it retains
/// itself and all that it dominates. Nodes that cannot be reached from the root have no part in
/// this.
#[derive(Clone, Debug)]
pub struct DominatorTree<'a> {
    graph: &'a Graph,
    arrays: Arc<Arrays>,
}

/// A tree without its graph.
#[derive(Debug)]
pub(crate) struct Arrays {
    /// `NONE` for the root and for nodes that cannot be reached.
    dominators: Box<[u32]>,
    retained: Retained,
    /// Where each node's part of `children` starts; one more than there are nodes.
    first_children: Box<[u32]>,
    children: Box<[u32]>,
}

/// Sums of sizes: 64 bits, unless those of this graph are too big.
#[derive(Clone, Debug)]
enum Retained {
    Narrow(Box<[u64]>),
    Wide(Box<[u128]>),
}

impl Retained {
    fn get(&self, node: u32) -> u128 {
        match self {
            Self::Narrow(sizes) => sizes[node as usize].into(),
            Self::Wide(sizes) => sizes[node as usize],
        }
    }
}

impl<'a> DominatorTree<'a> {
    /// Computes the tree: by the algorithm Semi-NCA of Loukas Georgiadis (Linear-Time Algorithms
    /// for Dominators and Related Problems, 2005), without recursion. That climbs the tree it makes, which is
    /// short work in any heap but quadratic at worst; where it gets long, ancestors are found by jumps instead.
    /// So the time is at most in proportion to edges times the logarithm of nodes, whatever the shape.
    pub fn new(graph: &'a Graph) -> Self {
        Self::watched(graph, &Progress::new()).expect("nobody could cancel it")
    }

    /// Computes the tree; its progress is told, and it can be cancelled.
    ///
    /// # Errors
    ///
    /// [`Cancelled`].
    pub fn watched(graph: &'a Graph, progress: &Progress) -> Result<Self, Cancelled> {
        let mut steps = Steps::new(progress, graph.node_count() * STEPS);
        let walk = semi_nca::Walk::new(graph, &mut steps)?;
        let dominators = walk.dominators(graph, &mut steps)?;
        let sizes: Vec<u64> = walk.preorder.iter().map(|node| graph.sizes()[*node as usize]).collect();
        let total: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
        let arrays = if u64::try_from(total).is_ok() {
            arrays(&walk, &dominators, sizes, Retained::Narrow, &mut steps)?
        } else {
            let sizes = sizes.into_iter().map(u128::from).collect();
            arrays(&walk, &dominators, sizes, Retained::Wide, &mut steps)?
        };
        Ok(Self { graph, arrays: Arc::new(arrays) })
    }

    /// The tree of the same graph once more.
    pub(crate) fn from_arrays(graph: &'a Graph, arrays: Arc<Arrays>) -> Self {
        debug_assert_eq!(arrays.dominators.len(), graph.node_count());
        Self { graph, arrays }
    }

    pub(crate) fn into_arrays(self) -> Arc<Arrays> {
        self.arrays
    }

    /// The graph this is the tree of.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Whether the root reaches the node.
    pub fn is_reachable(&self, node: NodeIndex) -> bool {
        node == NodeIndex::ROOT || self.arrays.dominators[node.get()] != NONE
    }

    /// The last node, of those that dominate this one, on any path from the root; `None` for the root and for
    /// nodes that cannot be reached.
    pub fn immediate_dominator(&self, node: NodeIndex) -> Option<Node<'a>> {
        let dominator = self.arrays.dominators[node.get()];
        (dominator != NONE).then(|| self.graph.node(NodeIndex(dominator)))
    }

    /// Bytes of the node and of all it dominates; `None` for nodes that cannot be reached.
    pub fn retained_size(&self, node: NodeIndex) -> Option<u128> {
        self.is_reachable(node).then(|| self.arrays.retained.get(node.0))
    }

    /// The nodes that this one immediately dominates.
    ///
    /// By retained size, the biggest first; nodes of equal size by decreasing post-order of a depth-first walk that
    /// takes edges from the last to the first, so roughly in the order of edges. Lists of up to 16 nodes
    /// are in this order in Firefox, too; longer ones are not sorted stably there.
    pub fn immediately_dominated(
        &self,
        node: NodeIndex,
    ) -> impl ExactSizeIterator<Item = Node<'a>> + DoubleEndedIterator + use<'a, '_> {
        let graph = self.graph;
        self.arrays.children[self.range(node.0)].iter().map(move |child| graph.node(NodeIndex(*child)))
    }

    /// The node, its dominator, and so on up to the root.
    pub fn dominators_of(&self, node: NodeIndex) -> impl Iterator<Item = Node<'a>> + use<'a, '_> {
        core::iter::successors(Some(self.graph.node(node)), |node| self.immediate_dominator(node.index()))
    }

    /// All that a node dominates, itself first, each after its dominator.
    pub fn retained_by(&self, node: NodeIndex) -> Vec<Node<'a>> {
        let mut all = vec![self.graph.node(node)];
        let mut next = 0;
        while let Some(node) = all.get(next) {
            let index = node.index();
            all.extend(self.immediately_dominated(index));
            next += 1;
        }
        all
    }

    /// Bytes of memory that the tree takes, the graph not counted.
    pub fn memory(&self) -> usize {
        let retained = match &self.arrays.retained {
            Retained::Narrow(sizes) => size_of_val(&**sizes),
            Retained::Wide(sizes) => size_of_val(&**sizes),
        };
        retained
            + size_of_val(&*self.arrays.dominators)
            + size_of_val(&*self.arrays.first_children)
            + size_of_val(&*self.arrays.children)
    }

    fn range(&self, node: u32) -> Range<usize> {
        self.arrays.first_children[node as usize] as usize
            ..self.arrays.first_children[node as usize + 1] as usize
    }
}

/// From numbers to nodes. `retained` has the nodes' own sizes at first.
fn arrays<T: Copy + Default + Ord + AddAssign>(
    walk: &semi_nca::Walk,
    dominators: &[u32],
    mut retained: Vec<T>,
    to_retained: fn(Box<[T]>) -> Retained,
    steps: &mut Steps<'_>,
) -> Result<Arrays, Cancelled> {
    for number in (1..retained.len()).rev() {
        let sum = retained[number];
        retained[dominators[number] as usize] += sum;
    }
    let (first, children) = children(dominators, &walk.postorder, &retained);
    let nodes = walk.numbers.len();
    let (mut by_node, mut sizes) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
    let (mut first_children, mut child_nodes) = (Vec::with_capacity(nodes + 1), Vec::new());
    child_nodes.reserve_exact(children.len());
    for part in chunks(0..nodes) {
        steps.steps(part.len())?;
        for node in part {
            if let Some(ahead) = walk.numbers.get(node + AHEAD) {
                let ahead = *ahead as usize;
                prefetch(dominators, ahead);
                prefetch(&retained, ahead);
                prefetch(&first, ahead);
            }
            first_children.push(child_nodes.len() as u32);
            let number = walk.numbers[node];
            if number == NONE {
                by_node.push(NONE);
                sizes.push(T::default());
                continue;
            }
            let place = number as usize;
            by_node.push(if place == 0 { NONE } else { walk.preorder[dominators[place] as usize] });
            sizes.push(retained[place]);
            let list = &children[first[place] as usize..first[place + 1] as usize];
            child_nodes.extend(list.iter().map(|child| walk.preorder[*child as usize]));
        }
    }
    first_children.push(child_nodes.len() as u32);
    Ok(Arrays {
        dominators: by_node.into(),
        retained: to_retained(sizes.into()),
        first_children: first_children.into(),
        children: child_nodes.into(),
    })
}

/// Lists of children, each by retained size. All are numbers.
fn children<T: Copy + Ord>(dominators: &[u32], postorder: &[u32], retained: &[T]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; dominators.len() + 1];
    for dominator in &dominators[1..] {
        starts[*dominator as usize + 1] += 1;
    }
    for number in 1..starts.len() {
        starts[number] += starts[number - 1];
    }
    let mut ends = starts.clone();
    let mut children = vec![0; dominators.len() - 1];
    // The root is left last.
    for number in postorder.iter().rev().skip(1) {
        let end = &mut ends[dominators[*number as usize] as usize];
        children[*end as usize] = *number;
        *end += 1;
    }
    for pair in starts.windows(2) {
        let list = &mut children[pair[0] as usize..pair[1] as usize];
        // Sizes lie all over memory; a long list looks each up once. Both keep the order of equals.
        if list.len() > LONG {
            list.sort_by_cached_key(|child| Reverse(retained[*child as usize]));
        } else if list.len() > 1 {
            list.sort_by_key(|child| Reverse(retained[*child as usize]));
        }
    }
    (starts, children)
}
