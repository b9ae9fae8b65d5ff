//! The dominator tree: what a node alone keeps alive, and how many bytes it retains. Analyses that use the tree:
//! sizes by class, retained sets, leak suspects, and the nodes behind the leaves of a census.

mod climb;
mod fetch;
mod fields;
mod individuals;
mod retained;
mod semi_nca;
mod shared;
mod suspects;

pub use fetch::{DominatorTreeNode, FetchOptions, FetchedChildren};
pub use fields::{FieldSizes, sizes_by_field};
pub use individuals::{MAX_INDIVIDUALS, individuals, individuals_watched};
pub use retained::{ClassSizes, RetainedSet, retained_by_groups, retained_by_leaves, sizes_by_class};
pub use shared::SharedDominators;
pub use suspects::{Accumulation, Suspect, SuspectOptions, suspects};

use core::cmp::Reverse;
use core::ops::AddAssign;
use std::sync::{Arc, OnceLock};

use crate::arrays::huge;
use crate::graph::{Graph, Node, NodeIndex};
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{Cancelled, Progress, Steps, chunks};

const NONE: u32 = u32::MAX;
/// The number of times that the computation visits each node, for the progress.
const STEPS: usize = 6;

/// Immediate dominators, retained sizes, and the nodes that each node immediately dominates.
///
/// A node dominates another if every path from the root to the other goes through it; it retains itself and all that it
/// dominates. The tree does not contain nodes that the root does not reach.
#[derive(Clone, Debug)]
pub struct DominatorTree<'a> {
    graph: &'a Graph,
    arrays: Arc<Arrays>,
}

/// A tree without its graph.
#[derive(Debug)]
pub(crate) struct Arrays {
    /// `NONE` for the root and for unreachable nodes.
    dominators: Box<[u32]>,
    retained: Retained,
    /// Nodes in the order in which the walk leaves them, the root last. Equal children stand in the reverse order.
    postorder: Box<[u32]>,
    /// Computed at first use, so that a caller who wants only sizes does not wait for it.
    children: OnceLock<Children>,
}

/// Sums of sizes, in 64 bits if those of this graph fit.
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
    /// Computes the tree with the algorithm Semi-NCA of Loukas Georgiadis (Linear-Time Algorithms for Dominators and
    /// Related Problems, 2005), without recursion.
    ///
    /// The algorithm climbs the tree that it builds. That is quick in heaps but quadratic at worst, so after too many
    /// steps it finds ancestors by jumps. The time is at most proportional to edges times the logarithm of nodes, for
    /// any shape of graph.
    pub fn new(graph: &'a Graph) -> Self {
        Self::watched(graph, &Progress::new()).expect("nothing cancels a progress that nobody else has")
    }

    /// Computes the tree with a [`Progress`], which shows how far it is and can cancel it.
    ///
    /// # Errors
    ///
    /// [`Cancelled`].
    pub fn watched(graph: &'a Graph, progress: &Progress) -> Result<Self, Cancelled> {
        let mut steps = Steps::new(progress, graph.node_count() * STEPS);
        let mut walk = semi_nca::Walk::new(graph, &mut steps)?;
        let (dominators, spare) = walk.dominators(&mut steps)?;
        let sizes = graph.sizes();
        let total: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
        let arrays = if u64::try_from(total).is_ok() {
            let mut own = huge(Vec::with_capacity(sizes.len()));
            own.extend_from_slice(sizes);
            arrays(walk, &dominators, spare, own, Retained::Narrow, &mut steps)?
        } else {
            let sizes = sizes.iter().map(|size| u128::from(*size)).collect();
            arrays(walk, &dominators, spare, sizes, Retained::Wide, &mut steps)?
        };
        Ok(Self { graph, arrays: Arc::new(arrays) })
    }

    /// The tree of `graph`, from which `arrays` comes.
    pub(crate) fn from_arrays(graph: &'a Graph, arrays: Arc<Arrays>) -> Self {
        debug_assert_eq!(arrays.dominators.len(), graph.node_count());
        Self { graph, arrays }
    }

    pub(crate) fn into_arrays(self) -> Arc<Arrays> {
        self.arrays
    }

    /// The graph of the tree.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Whether the root reaches the node.
    pub fn is_reachable(&self, node: NodeIndex) -> bool {
        node == NodeIndex::ROOT || self.arrays.dominators[node.get()] != NONE
    }

    /// The dominator of the node that is nearest to it; `None` for the root and for unreachable nodes.
    pub fn immediate_dominator(&self, node: NodeIndex) -> Option<Node<'a>> {
        let dominator = self.arrays.dominators[node.get()];
        (dominator != NONE).then(|| self.graph.node(NodeIndex(dominator)))
    }

    /// Bytes of the node and of all that it dominates; `None` for unreachable nodes.
    pub fn retained_size(&self, node: NodeIndex) -> Option<u128> {
        self.is_reachable(node).then(|| self.arrays.retained.get(node.0))
    }

    /// The nodes that this one immediately dominates, by retained size, the biggest first.
    ///
    /// Nodes of equal size are in decreasing post-order of a depth-first walk that takes edges from the last to the
    /// first, so roughly in the order of edges. Firefox has this order in lists of up to 16 nodes; its sort of longer
    /// lists is not stable.
    pub fn immediately_dominated(
        &self,
        node: NodeIndex,
    ) -> impl ExactSizeIterator<Item = Node<'a>> + DoubleEndedIterator + use<'a, '_> {
        let graph = self.graph;
        self.children(node.0).iter().map(move |child| graph.node(NodeIndex(*child)))
    }

    /// The node, its dominator, and so on up to the root.
    pub fn dominators_of(&self, node: NodeIndex) -> impl Iterator<Item = Node<'a>> + use<'a, '_> {
        core::iter::successors(Some(self.graph.node(node)), |node| self.immediate_dominator(node.index()))
    }

    /// All nodes that a node dominates, itself first, and each after its dominator.
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

    /// Bytes of memory that the tree takes, without the graph. They include the lists of immediately dominated nodes
    /// once a caller has used one.
    pub fn memory(&self) -> usize {
        let retained = match &self.arrays.retained {
            Retained::Narrow(sizes) => size_of_val(&**sizes),
            Retained::Wide(sizes) => size_of_val(&**sizes),
        };
        retained
            + size_of_val(&*self.arrays.dominators)
            + size_of_val(&*self.arrays.postorder)
            + self.arrays.children.get().map_or(0, Children::memory)
    }

    fn children(&self, node: u32) -> &[u32] {
        self.arrays
            .children
            .get_or_init(|| match &self.arrays.retained {
                Retained::Narrow(sizes) => Children::new(&self.arrays, sizes),
                Retained::Wide(sizes) => Children::new(&self.arrays, sizes),
            })
            .of(node)
    }
}

/// Turns numbers into nodes, and adds up retained sizes. Fills `by_node` anew. `retained` has the nodes' own sizes at
/// first, and keeps those of nodes that the walk did not meet.
fn arrays<T: Copy + AddAssign>(
    walk: semi_nca::Walk,
    dominators: &[u32],
    mut by_node: Vec<u32>,
    mut retained: Vec<T>,
    to_retained: fn(Box<[T]>) -> Retained,
    steps: &mut Steps<'_>,
) -> Result<Arrays, Cancelled> {
    let preorder = &walk.preorder;
    by_node.clear();
    by_node.resize(retained.len(), NONE);
    for part in chunks(1..preorder.len()).rev() {
        steps.steps(part.len())?;
        for number in part.rev() {
            if let Some(ahead) = number.checked_sub(AHEAD) {
                prefetch(&retained, preorder[ahead] as usize);
                prefetch(&by_node, preorder[ahead] as usize);
            }
            let (node, dominator) = (preorder[number], preorder[dominators[number] as usize]);
            by_node[node as usize] = dominator;
            // What is below the node has been added to it: it has greater numbers.
            let sum = retained[node as usize];
            retained[dominator as usize] += sum;
        }
    }
    Ok(Arrays {
        dominators: by_node.into(),
        retained: to_retained(retained.into()),
        postorder: walk.postorder.into(),
        children: OnceLock::new(),
    })
}

/// The nodes that each node immediately dominates, by retained size.
#[derive(Debug)]
struct Children {
    /// Where each node's part of `nodes` ends.
    ends: Box<[u32]>,
    nodes: Box<[u32]>,
}

impl Children {
    fn new<T: Copy + Ord>(Arrays { dominators, postorder, .. }: &Arrays, retained: &[T]) -> Self {
        let left = &postorder[..postorder.len() - 1];
        let mut ends = huge(vec![0_u32; dominators.len()]);
        for (node, dominator) in dominators.iter().enumerate() {
            if let Some(ahead) = dominators.get(node + AHEAD) {
                prefetch(&ends, *ahead as usize);
            }
            if *dominator != NONE {
                ends[*dominator as usize] += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            // First where each part starts, which moves on to its end as it is filled.
            sum += core::mem::replace(end, sum);
        }
        let mut nodes = huge(vec![0; left.len()]);
        for (place, node) in left.iter().enumerate().rev() {
            if let Some(ahead) = left.get(place.wrapping_sub(3 * AHEAD)) {
                prefetch(dominators, *ahead as usize);
            }
            if let Some(ahead) = left.get(place.wrapping_sub(2 * AHEAD)) {
                prefetch(&ends, dominators[*ahead as usize] as usize);
            }
            if let Some(ahead) = left.get(place.wrapping_sub(AHEAD)) {
                prefetch(&nodes, ends[dominators[*ahead as usize] as usize] as usize);
            }
            let end = &mut ends[dominators[*node as usize] as usize];
            nodes[*end as usize] = *node;
            *end += 1;
        }
        let mut start = 0;
        // Sizes lie all over memory: each is looked up once.
        let mut sized = Vec::new();
        for end in &ends {
            let list = start..*end as usize;
            start = *end as usize;
            if list.len() < 2 {
                continue;
            }
            sized.clear();
            sized.extend(list.clone().map(|place| {
                if let Some(ahead) = nodes.get(place + AHEAD) {
                    prefetch(retained, *ahead as usize);
                }
                (retained[nodes[place] as usize], nodes[place])
            }));
            // This keeps the order of equals.
            sized.sort_by_key(|(size, _)| Reverse(*size));
            for (node, (_, sorted)) in nodes[list].iter_mut().zip(&sized) {
                *node = *sorted;
            }
        }
        Self { ends: ends.into(), nodes: nodes.into() }
    }

    fn of(&self, node: u32) -> &[u32] {
        let start = if node == 0 { 0 } else { self.ends[node as usize - 1] };
        &self.nodes[start as usize..self.ends[node as usize] as usize]
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.nodes)
    }
}
