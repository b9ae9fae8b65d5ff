//! The dominator tree: for each node, the nodes that it keeps alive alone, and the bytes that it retains. Analyses
//! that use the tree: sizes by class, retained sets, leak suspects, and the nodes behind the leaves of a census.

mod children;
mod climb;
mod fetch;
mod fields;
mod group_retained;
mod individuals;
mod ranks;
mod refine;
mod retained;
mod semi_nca;
mod shared;
mod suspects;

pub use fetch::{DominatorTreeNode, FetchOptions, FetchedChildren};
pub use fields::{FieldSizes, sizes_by_field, sizes_by_field_watched};
pub use individuals::{MAX_INDIVIDUALS, individuals, individuals_watched};
pub use retained::{
    ClassSizes, RetainedSet, retained_by_groups, retained_by_groups_watched, retained_by_leaves,
    retained_by_leaves_watched, sizes_by_class, sizes_by_class_watched,
};
pub use shared::SharedDominators;
pub use suspects::{AccumulationStep, Suspect, SuspectOptions, suspects, suspects_watched};

use core::ops::AddAssign;
use std::sync::{Arc, OnceLock};

use crate::arrays::huge;
use crate::graph::{Graph, HeapNode, NodeIndex};
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{AnalysisProgress, CancelledError, StepCounter, chunks};
use children::ChildLists;

/// The message of `expect` in analyses that create their own [`AnalysisProgress`].
const NOT_CANCELLED: &str = "only the caller's progress could cancel the analysis";

const NONE: u32 = u32::MAX;
/// The value of an inverted number that means "no dominator".
const NOTHING: u32 = 0;
/// The number of steps that the progress counts for each node.
const STEPS: usize = 2;
/// The number of steps that a computation with its own walk counts for each node. These steps replace the second step
/// of `STEPS`.
const STEPS_WITH_WALK: usize = 6;

/// The immediate dominators, the retained sizes, and the nodes that each node immediately dominates.
///
/// A node dominates a second node if every path from the root to the second node goes through the first node. A node
/// retains itself and all nodes that it dominates. The tree contains only nodes that the root reaches.
#[derive(Clone, Debug)]
pub struct DominatorTree<'a> {
    graph: &'a Graph,
    arrays: Arc<TreeArrays>,
}

/// A tree without its graph.
#[derive(Debug)]
pub(crate) struct TreeArrays {
    /// The numbers of dominators, with all bits inverted; `NOTHING` for the root and for unreachable nodes.
    inverted: Box<[u32]>,
    retained: RetainedSizes,
    /// The nodes in the order in which a walk leaves them, the root last; `None` if the computation needed no walk.
    postorder: Option<Box<[u32]>>,
    /// Computed at first use, so that a caller who needs only sizes does not wait for the lists.
    children: OnceLock<ChildLists>,
}

impl TreeArrays {
    fn new(inverted: Vec<u32>, retained: RetainedSizes, postorder: Option<Vec<u32>>) -> Self {
        let postorder = postorder.map(Vec::into_boxed_slice);
        Self { inverted: inverted.into(), retained, postorder, children: OnceLock::new() }
    }

    fn dominator(&self, node: u32) -> Option<u32> {
        let inverted = self.inverted[node as usize];
        (inverted != NOTHING).then_some(!inverted)
    }

    /// The lists of children. Counts one step for each node unless there is a postorder.
    fn lists(&self, graph: &Graph, steps: &mut StepCounter<'_>) -> Result<ChildLists, CancelledError> {
        let ranks = match &self.postorder {
            Some(postorder) => ranks::ranks_of(postorder, graph.node_count()),
            None => ranks::ranks(graph, steps)?,
        };
        Ok(match &self.retained {
            RetainedSizes::Small(sizes) => ChildLists::new(&self.inverted, sizes, &ranks),
            RetainedSizes::Narrow(sizes) => ChildLists::new(&self.inverted, sizes, &ranks),
            RetainedSizes::Wide(sizes) => ChildLists::new(&self.inverted, sizes, &ranks),
        })
    }
}

/// The retained sizes, in an integer type that can hold the total size of the graph.
#[derive(Clone, Debug)]
enum RetainedSizes {
    Small(Box<[u32]>),
    Narrow(Box<[u64]>),
    Wide(Box<[u128]>),
}

impl RetainedSizes {
    fn get(&self, node: u32) -> u128 {
        match self {
            Self::Small(sizes) => sizes[node as usize].into(),
            Self::Narrow(sizes) => sizes[node as usize].into(),
            Self::Wide(sizes) => sizes[node as usize],
        }
    }
}

impl<'a> DominatorTree<'a> {
    /// Computes the tree.
    ///
    /// In a snapshot that a walk has written, each node except the root comes after a node with an edge to it. For
    /// this order, the algorithm starts with a tree in which each node is below the first node with an edge to it, and
    /// refines this tree. For another order, or if refining takes too many steps, the algorithm is Semi-NCA by Loukas
    /// Georgiadis (Linear-Time Algorithms for Dominators and Related Problems, 2005). Semi-NCA also has a limit for its
    /// steps; beyond the limit, it finds ancestors by jumps. The algorithms do not recurse. The time is at most
    /// proportional to edges times the logarithm of nodes, for any shape of graph.
    pub fn new(graph: &'a Graph) -> Self {
        Self::watched(graph, &AnalysisProgress::new()).expect(NOT_CANCELLED)
    }

    /// Computes the tree with an [`AnalysisProgress`], which shows the progress and can cancel the computation.
    ///
    /// # Errors
    ///
    /// Returns a [`CancelledError`] if the computation was cancelled.
    pub fn watched(graph: &'a Graph, progress: &AnalysisProgress) -> Result<Self, CancelledError> {
        let mut steps = StepCounter::new(progress, graph.node_count() * STEPS);
        let arrays = if let Some(tree) = refine::refine(graph, &mut steps)? {
            in_order(tree, graph, &mut steps)?
        } else {
            progress.expect((graph.node_count() * (1 + STEPS_WITH_WALK - STEPS)) as u64);
            by_walk(graph, &mut steps)?
        };
        Ok(Self { graph, arrays: Arc::new(arrays) })
    }

    /// The tree of `graph`; `arrays` must come from the same graph.
    pub(crate) fn from_arrays(graph: &'a Graph, arrays: Arc<TreeArrays>) -> Self {
        debug_assert_eq!(arrays.inverted.len(), graph.node_count());
        Self { graph, arrays }
    }

    pub(crate) fn into_arrays(self) -> Arc<TreeArrays> {
        self.arrays
    }

    /// The graph of the tree.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Whether the root reaches the node.
    pub fn is_reachable(&self, node: NodeIndex) -> bool {
        node == NodeIndex::ROOT || self.arrays.dominator(node.0).is_some()
    }

    /// The nearest dominator of the node; `None` for the root and for unreachable nodes.
    pub fn immediate_dominator(&self, node: NodeIndex) -> Option<HeapNode<'a>> {
        self.arrays.dominator(node.0).map(|dominator| self.graph.node(NodeIndex(dominator)))
    }

    /// The bytes of the node and of all nodes that it dominates; `None` for unreachable nodes.
    pub fn retained_size(&self, node: NodeIndex) -> Option<u128> {
        self.is_reachable(node).then(|| self.arrays.retained.get(node.0))
    }

    /// The nodes that this node immediately dominates, ordered by retained size, the largest first.
    ///
    /// The first call computes the lists of all nodes, unless [`prepare_lists`](Self::prepare_lists) has computed
    /// them.
    ///
    /// Nodes of equal size are in decreasing post-order of a depth-first walk that takes edges from the last to the
    /// first: roughly in the order of edges. Firefox has this order in lists of up to 16 nodes. Its sort of longer
    /// lists is not stable.
    pub fn immediately_dominated(
        &self,
        node: NodeIndex,
    ) -> impl ExactSizeIterator<Item = HeapNode<'a>> + DoubleEndedIterator + use<'a, '_> {
        let graph = self.graph;
        self.children(node.0).iter().map(move |child| graph.node(NodeIndex(*child)))
    }

    /// Computes the lists of immediately dominated nodes, with an [`AnalysisProgress`], which shows the progress and
    /// can cancel the computation.
    ///
    /// # Errors
    ///
    /// Returns a [`CancelledError`] if the computation was cancelled.
    pub fn prepare_lists(&self, progress: &AnalysisProgress) -> Result<(), CancelledError> {
        if self.arrays.children.get().is_none() {
            let visited = if self.arrays.postorder.is_some() { 0 } else { self.graph.node_count() };
            let children = self.arrays.lists(self.graph, &mut StepCounter::new(progress, visited))?;
            // If another thread was faster, it has set the same lists.
            let _ = self.arrays.children.set(children);
        }
        Ok(())
    }

    /// The node, its dominator, and so on up to the root.
    pub fn dominators_of(&self, node: NodeIndex) -> impl Iterator<Item = HeapNode<'a>> + use<'a, '_> {
        core::iter::successors(Some(self.graph.node(node)), |node| self.immediate_dominator(node.index()))
    }

    /// All nodes that a node dominates: the node itself first, and each node after its dominator.
    pub fn retained_by(&self, node: NodeIndex) -> Vec<HeapNode<'a>> {
        let mut all = vec![self.graph.node(node)];
        let mut next = 0;
        while let Some(node) = all.get(next) {
            let index = node.index();
            all.extend(self.immediately_dominated(index));
            next += 1;
        }
        all
    }

    /// The memory of the tree in bytes, without the graph. It includes the lists of immediately dominated nodes after
    /// their first use.
    pub fn memory(&self) -> usize {
        let retained = match &self.arrays.retained {
            RetainedSizes::Small(sizes) => size_of_val(&**sizes),
            RetainedSizes::Narrow(sizes) => size_of_val(&**sizes),
            RetainedSizes::Wide(sizes) => size_of_val(&**sizes),
        };
        retained
            + size_of_val(&*self.arrays.inverted)
            + self.arrays.postorder.as_deref().map_or(0, size_of_val)
            + self.arrays.children.get().map_or(0, ChildLists::memory)
    }

    fn children(&self, node: u32) -> &[u32] {
        let lists = self.arrays.children.get_or_init(|| {
            let progress = AnalysisProgress::new();
            let lists = self.arrays.lists(self.graph, &mut StepCounter::new(&progress, 0));
            lists.expect(NOT_CANCELLED)
        });
        lists.children(node)
    }
}

/// Adds up the retained sizes of nodes that come after their dominators. Counts one step for each node.
fn in_order(
    tree: refine::RefinedTree,
    graph: &Graph,
    steps: &mut StepCounter<'_>,
) -> Result<TreeArrays, CancelledError> {
    let refine::RefinedTree { mut inverted, spare } = tree;
    inverted[0] = NOTHING;
    let (sizes, total) = (graph.sizes(), graph.total_size());
    let retained = if u32::try_from(total).is_ok() {
        RetainedSizes::Small(add_up(&inverted, own(spare, sizes, |size| size as u32), steps)?)
    } else if u64::try_from(total).is_ok() {
        RetainedSizes::Narrow(add_up(&inverted, own(Vec::new(), sizes, |size| size), steps)?)
    } else {
        RetainedSizes::Wide(add_up(&inverted, own(Vec::new(), sizes, u128::from), steps)?)
    };
    Ok(TreeArrays::new(inverted, retained, None))
}

/// The nodes' own sizes, in the memory of `array` if it has enough room.
fn own<T>(mut array: Vec<T>, sizes: &[u64], size: impl Fn(u64) -> T) -> Vec<T> {
    array.clear();
    if array.capacity() < sizes.len() {
        array = huge(Vec::with_capacity(sizes.len()));
    }
    array.extend(sizes.iter().map(|own| size(*own)));
    array
}

fn add_up<T: Copy + AddAssign>(
    inverted: &[u32],
    mut sums: Vec<T>,
    steps: &mut StepCounter<'_>,
) -> Result<Box<[T]>, CancelledError> {
    for part in chunks(0..inverted.len()).rev() {
        steps.steps(part.len())?;
        for node in part.rev() {
            if inverted[node] != NOTHING {
                // The nodes below this node come after it, so their sums are already added to its sum.
                let sum = sums[node];
                sums[!inverted[node] as usize] += sum;
            }
        }
    }
    Ok(sums.into())
}

/// Computes the tree with its own walk. Counts six steps for each node.
fn by_walk(graph: &Graph, steps: &mut StepCounter<'_>) -> Result<TreeArrays, CancelledError> {
    let mut walk = semi_nca::DepthFirstWalk::new(graph, steps)?;
    let (dominators, spare) = walk.dominators(steps)?;
    let (sizes, total) = (graph.sizes(), graph.total_size());
    if u64::try_from(total).is_ok() {
        let own = own(Vec::new(), sizes, |size| size);
        arrays(walk, &dominators, spare, own, RetainedSizes::Narrow, steps)
    } else {
        let own = own(Vec::new(), sizes, u128::from);
        arrays(walk, &dominators, spare, own, RetainedSizes::Wide, steps)
    }
}

/// Turns the walk's numbers of dominators into nodes, and adds up retained sizes. Overwrites `by_node`. At first,
/// `retained` contains the nodes' own sizes. The sizes of nodes that the walk did not meet stay unchanged.
fn arrays<T: Copy + AddAssign>(
    walk: semi_nca::DepthFirstWalk,
    dominators: &[u32],
    mut by_node: Vec<u32>,
    mut retained: Vec<T>,
    to_retained: fn(Box<[T]>) -> RetainedSizes,
    steps: &mut StepCounter<'_>,
) -> Result<TreeArrays, CancelledError> {
    let preorder = &walk.preorder;
    by_node.clear();
    by_node.resize(retained.len(), NOTHING);
    for part in chunks(1..preorder.len()).rev() {
        steps.steps(part.len())?;
        for number in part.rev() {
            if let Some(ahead) = number.checked_sub(AHEAD) {
                prefetch(&retained, preorder[ahead] as usize);
                prefetch(&by_node, preorder[ahead] as usize);
            }
            let (node, dominator) = (preorder[number], preorder[dominators[number] as usize]);
            by_node[node as usize] = !dominator;
            // The nodes below this node have greater numbers, so their sums are already added to its sum.
            let sum = retained[node as usize];
            retained[dominator as usize] += sum;
        }
    }
    Ok(TreeArrays::new(by_node, to_retained(retained.into()), Some(walk.postorder)))
}
