//! Finds the nodes that a leaf of a report counts.

use super::DominatorTree;
use crate::census::{Breakdown, CensusError, CensusReport, census_watched};
use crate::graph::{HeapNode, NodeId};
use crate::progress::AnalysisProgress;

/// The number of nodes that front ends list by default, as in Firefox.
pub const MAX_INDIVIDUALS: usize = 1_000;

/// At most `max` nodes that some leaves of a census count, ordered by retained size, the largest first.
///
/// `leaves` selects leaves by number, as in [`CensusTreeNode::leaves`](crate::census::CensusTreeNode::leaves) of a
/// tree with the same breakdown. Nodes with equal retained sizes are in the order of the census.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs.
pub fn individuals<'a>(
    tree: &DominatorTree<'a>,
    breakdown: &Breakdown,
    leaves: impl Fn(u64) -> bool,
    max: usize,
) -> Result<Vec<HeapNode<'a>>, CensusError> {
    individuals_watched(tree, breakdown, leaves, max, &AnalysisProgress::new())
}

/// [`individuals`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs, or if the analysis was
/// cancelled.
pub fn individuals_watched<'a>(
    tree: &DominatorTree<'a>,
    breakdown: &Breakdown,
    leaves: impl Fn(u64) -> bool,
    max: usize,
    progress: &AnalysisProgress,
) -> Result<Vec<HeapNode<'a>>, CensusError> {
    let report = census_watched(tree.graph(), &breakdown.with_buckets(), progress)?;
    let mut nodes = Vec::new();
    collect(&report, &leaves, &mut 0, &mut |id| nodes.extend(tree.graph().find(NodeId(id))));
    nodes.sort_by_cached_key(|node| core::cmp::Reverse(tree.retained_size(node.index())));
    nodes.truncate(max);
    Ok(nodes)
}

fn collect(
    report: &CensusReport,
    is_wanted: &impl Fn(u64) -> bool,
    place: &mut u64,
    found: &mut impl FnMut(u64),
) {
    let here = *place;
    *place += 1;
    if let CensusReport::Bucket(ids) = report {
        if is_wanted(here) {
            ids.iter().copied().for_each(found);
        }
        return;
    }
    for (_, below) in report.children() {
        collect(below, is_wanted, place, found);
    }
}
