//! The census: all reachable nodes, grouped by a [`Breakdown`]. The result is a [`CensusReport`]. It can become a
//! [`CensusTree`], or, with a second report, a [`CensusDifference`].
//!
//! A census reads only the kind of a node to decide where the node counts. So one walk sums up the nodes of each kind.
//! The breakdown then groups only the kinds. A graph has far fewer kinds than nodes.

mod breakdown;
mod counter;
mod difference;
mod report;
mod tree;

pub use breakdown::{Breakdown, BreakdownError};
pub use difference::CensusDifference;
pub use report::{CensusCount, CensusFrame, CensusKey, CensusReport, CensusStack, StackKey};
pub use tree::{CensusTree, CensusTreeName, CensusTreeNode, TreeOptions};

use core::fmt;

use crate::graph::{Graph, HeapNode};
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{AnalysisProgress, CancelledError, StepCounter};
use crate::sweep::sweep;
use crate::walk::BreadthFirst;
use counter::BreakdownCounter;

/// The reason why a census failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CensusError {
    /// The breakdown groups by descriptive name, and a node of this type has no descriptive name.
    NoDescriptiveName(String),
    /// The census was cancelled.
    Cancelled,
}

impl fmt::Display for CensusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDescriptiveName(type_name) => {
                write!(f, "census by descriptiveType: a node of type {type_name} has no descriptive name")
            }
            Self::Cancelled => CancelledError.fmt(f),
        }
    }
}

impl std::error::Error for CensusError {}

impl From<CancelledError> for CensusError {
    fn from(_: CancelledError) -> Self {
        Self::Cancelled
    }
}

/// The sums of all nodes of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindGroup {
    pub(crate) count: u64,
    pub(crate) bytes: u128,
    pub(crate) smallest_id: u64,
}

impl KindGroup {
    const NOTHING: Self = Self { count: 0, bytes: 0, smallest_id: u64::MAX };

    #[inline]
    fn add(&mut self, size: u64, id: u64) {
        self.count += 1;
        self.bytes += u128::from(size);
        self.smallest_id = self.smallest_id.min(id);
    }
}

/// Groups and counts all nodes that the root reaches.
///
/// The root itself counts only if an edge leads back to it. Keys that are texts or stacks are in Firefox's order, by
/// the smallest id that each key counts: the key whose smallest id is the greatest comes first. The keys `other`,
/// `noFilename` and `noStack` are last. Keys that look like the index of an array precede all other keys, as in any
/// JavaScript object. Coarse types have a fixed order.
///
/// Unlike in Firefox, sums do not wrap at 2^64, and equal type names are one key even if a snapshot contains the text
/// twice.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs.
pub fn census(graph: &Graph, breakdown: &Breakdown) -> Result<CensusReport, CensusError> {
    census_watched(graph, breakdown, &AnalysisProgress::new())
}

/// A [`census()`] with an [`AnalysisProgress`], which shows the progress and can cancel the census.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs, or if the analysis was
/// cancelled.
pub fn census_watched(
    graph: &Graph,
    breakdown: &Breakdown,
    progress: &AnalysisProgress,
) -> Result<CensusReport, CensusError> {
    let mut groups = vec![KindGroup::NOTHING; graph.kinds().len()];
    let mut order = Vec::new();
    let (ids, sizes, kinds_of) = (graph.ids(), graph.sizes(), graph.kinds_of());
    let mut count = |node: usize| {
        if let Some(ahead) = kinds_of.get(node + AHEAD) {
            prefetch(&groups, *ahead as usize);
        }
        groups[kinds_of[node] as usize].add(sizes[node], ids[node]);
    };
    let mut steps = StepCounter::new(progress, graph.node_count());
    if has_bucket(breakdown) {
        let mut walk = BreadthFirst::new(graph);
        while let Some(from) = walk.next() {
            steps.step()?;
            for to in graph.referents(from) {
                if walk.arrive(*to) {
                    count(*to as usize);
                    order.push(*to);
                }
            }
        }
    } else {
        // Sums are the same in any order.
        sweep(graph, &mut steps, count)?;
    }
    report(graph, breakdown, &groups, &order)
}

/// A census of the given nodes. A node that is given several times counts several times.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs.
pub fn census_of<'a>(
    graph: &'a Graph,
    breakdown: &Breakdown,
    nodes: impl IntoIterator<Item = HeapNode<'a>>,
) -> Result<CensusReport, CensusError> {
    let mut groups = vec![KindGroup::NOTHING; graph.kinds().len()];
    let mut order = Vec::new();
    for node in nodes {
        let index = node.index().0;
        groups[graph.kinds_of()[index as usize] as usize].add(node.shallow_size(), node.id().0);
        order.push(index);
    }
    report(graph, breakdown, &groups, &order)
}

/// A census of one node. It shows under which keys a breakdown counts the node.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs.
pub fn describe_node(node: HeapNode<'_>, breakdown: &Breakdown) -> Result<CensusReport, CensusError> {
    let graph = node.graph();
    let mut root = BreakdownCounter::new(breakdown);
    let mut group = KindGroup::NOTHING;
    group.add(node.shallow_size(), node.id().0);
    let kind = &graph.kinds()[graph.kinds_of()[node.index().get()] as usize];
    let mut buckets = Vec::new();
    let mut into = Vec::new();
    root.add(graph, kind, group, &mut buckets, &mut into)?;
    for bucket in into {
        buckets[bucket as usize].push(node.id().0);
    }
    Ok(root.report(graph, &mut counter::ReportTables::new(&mut buckets)))
}

fn has_bucket(breakdown: &Breakdown) -> bool {
    match breakdown {
        Breakdown::Bucket => true,
        Breakdown::Count { .. } => false,
        Breakdown::InternalType { then } | Breakdown::DescriptiveType { then } => has_bucket(then),
        Breakdown::ObjectClass { then, other } => has_bucket(then) || has_bucket(other),
        Breakdown::Filename { then, no_filename } => has_bucket(then) || has_bucket(no_filename),
        Breakdown::AllocationStack { then, no_stack } => has_bucket(then) || has_bucket(no_stack),
        Breakdown::CoarseType { objects, scripts, strings, other, dom_node } => {
            [objects, scripts, strings, other, dom_node].into_iter().any(|inner| has_bucket(inner))
        }
        Breakdown::All(each) => each.iter().any(has_bucket),
    }
}

fn report(
    graph: &Graph,
    breakdown: &Breakdown,
    groups: &[KindGroup],
    order: &[u32],
) -> Result<CensusReport, CensusError> {
    let mut root = BreakdownCounter::new(breakdown);
    let mut buckets: Vec<Vec<u64>> = Vec::new();
    // The buckets of each kind of node: `into[ends[kind - 1]..ends[kind]]`.
    let (mut into, mut ends) = (Vec::new(), Vec::with_capacity(groups.len()));
    for (kind, group) in graph.kinds().iter().zip(groups) {
        if group.count > 0 {
            root.add(graph, kind, *group, &mut buckets, &mut into)?;
        }
        ends.push(into.len());
    }
    for index in order {
        let kind = graph.kinds_of()[*index as usize] as usize;
        let start = kind.checked_sub(1).map_or(0, |before| ends[before]);
        for bucket in &into[start..ends[kind]] {
            buckets[*bucket as usize].push(graph.ids()[*index as usize]);
        }
    }
    Ok(root.report(graph, &mut counter::ReportTables::new(&mut buckets)))
}
