//! Computes the answer to each query.

use std::sync::Arc;

use heap_graph::census::{
    CensusDifference, CensusError, CensusTreeName, CensusTreeNode, TreeOptions, census_watched,
};
use heap_graph::dominators::SharedDominators;
use heap_graph::paths::PathTree;
use heap_graph::{AnalysisProgress, CancelledError, CensusReport, CensusTree, Graph};

use super::answer::{QueryAnswer, TreeMapBox};
use super::error::SessionError;
use super::generations::Generations;
use super::id::SnapshotId;
use super::nodes;
use super::query::{GroupBy, Query};

/// A tree map has at most `MAX_LEVELS` levels, and a box contains at most `MAX_BOXES` boxes.
const MAX_LEVELS: usize = 5;
const MAX_BOXES: usize = 60;

/// The key of an answer in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TaskKey {
    Query(Query),
    /// The groups of a census. Trees, tree maps and differences are made from these groups.
    Report(SnapshotId, GroupBy),
    /// The walk that all paths of a snapshot share.
    Walk(SnapshotId),
}

impl TaskKey {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Query(query) => query.kind(),
            Self::Report(..) => "report",
            Self::Walk(..) => "walk",
        }
    }

    pub(super) fn is_about(&self, snapshot: SnapshotId) -> bool {
        match self {
            Self::Query(query) => query.snapshots().contains(&snapshot),
            Self::Report(of, _) | Self::Walk(of) => *of == snapshot,
        }
    }
}

/// The inputs of a computation.
pub(super) struct TaskInputs<'a> {
    pub(super) graph: &'a dyn Fn(SnapshotId) -> Result<Arc<Graph>, SessionError>,
    /// Returns the answer to another key.
    pub(super) answer: &'a dyn Fn(TaskKey) -> Result<Arc<QueryAnswer>, SessionError>,
    pub(super) progress: &'a AnalysisProgress,
}

impl From<CensusError> for SessionError {
    fn from(error: CensusError) -> Self {
        match error {
            CensusError::Cancelled => Self::Cancelled,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<CancelledError> for SessionError {
    fn from(_: CancelledError) -> Self {
        Self::Cancelled
    }
}

pub(super) fn compute(key: &TaskKey, needs: &TaskInputs<'_>) -> Result<QueryAnswer, SessionError> {
    let query = match key {
        TaskKey::Report(snapshot, by) => {
            let graph = (needs.graph)(*snapshot)?;
            return Ok(QueryAnswer::Report(census_watched(&graph, &by.breakdown(), needs.progress)?));
        }
        TaskKey::Walk(snapshot) => {
            return Ok(QueryAnswer::Walk(PathTree::watched(&*(needs.graph)(*snapshot)?, needs.progress)?));
        }
        TaskKey::Query(query) => query,
    };
    match query {
        Query::Census { snapshot, by, invert, filter } => needs.report(*snapshot, by, |report| {
            QueryAnswer::Tree(CensusTree::new(report, &shape(*invert, filter)))
        }),
        Query::TreeMap { snapshot, by, filter } => needs.report(*snapshot, by, |report| {
            let tree = CensusTree::new(report, &shape(false, filter));
            QueryAnswer::TreeMap(tree_map_box(&tree, tree.root(), MAX_LEVELS))
        }),
        Query::Diff { baseline, comparison, by, invert, filter } => {
            let second = needs.report_of(*comparison, by)?;
            needs.report(*baseline, by, |first| {
                let QueryAnswer::Report(second) = &*second else {
                    unreachable!("the answer to this key is a report")
                };
                let difference = CensusDifference::new(first, second);
                QueryAnswer::Tree(CensusTree::from_difference(&difference, &shape(*invert, filter)))
            })
        }
        Query::Generations { snapshots, by, invert, filter } => {
            let mut trees = Vec::new();
            for snapshot in snapshots {
                let answer = needs.report_of(*snapshot, by)?;
                let QueryAnswer::Report(report) = &*answer else {
                    unreachable!("the answer to this key is a report")
                };
                trees.push(CensusTree::new(report, &shape(*invert, filter)));
            }
            // In an inverted tree, the own bytes of a group are the bytes of its leaves.
            let amount = |node: &CensusTreeNode| if *invert { node.bytes } else { node.total_bytes };
            Ok(QueryAnswer::Generations(Generations::new(&trees, amount)))
        }
        Query::Dominators { snapshot, filter } if filter.is_empty() => {
            let tree = SharedDominators::watched((needs.graph)(*snapshot)?, needs.progress)?;
            // Makes the lists of children now, so that no front end waits for them later.
            tree.tree().prepare_lists(needs.progress)?;
            Ok(QueryAnswer::Dominators(tree))
        }
        Query::Dominators { snapshot, filter } => {
            nodes::part(&needs.tree(*snapshot)?, filter, needs.progress)
        }
        Query::Classes { snapshot, filter } => {
            nodes::classes(&needs.tree(*snapshot)?, filter, needs.progress)
        }
        Query::Individuals { snapshot, by, invert, group, filter } => {
            let tree = needs.tree(*snapshot)?;
            let (snapshot, by, invert) = (*snapshot, by.clone(), *invert);
            let census = Query::Census { snapshot, by: by.clone(), invert, filter: String::new() };
            let census = (needs.answer)(TaskKey::Query(census))?;
            let QueryAnswer::Tree(census) = &*census else {
                unreachable!("the answer to this key is a tree")
            };
            let leaves = nodes::leaves(census, *group);
            nodes::individuals(&tree, &by, &leaves, filter, needs.progress)
        }
        Query::Search { snapshot, text } => nodes::search(&needs.tree(*snapshot)?, text, needs.progress),
        Query::Suspects { snapshot } => nodes::all_suspects(&needs.tree(*snapshot)?, needs.progress),
        Query::Paths { snapshot, node, max } => {
            let graph = (needs.graph)(*snapshot)?;
            // Looks up the node before the walk: if the node is missing, the walk is not computed.
            let target = nodes::find(&graph, *node)?;
            let walk = (needs.answer)(TaskKey::Walk(*snapshot))?;
            let QueryAnswer::Walk(walk) = &*walk else { unreachable!("the answer to this key is a walk") };
            nodes::paths(&graph, walk, target, *max)
        }
    }
}

impl TaskInputs<'_> {
    fn report_of(&self, snapshot: SnapshotId, by: &GroupBy) -> Result<Arc<QueryAnswer>, SessionError> {
        (self.answer)(TaskKey::Report(snapshot, by.clone()))
    }

    fn report(
        &self,
        snapshot: SnapshotId,
        by: &GroupBy,
        then: impl FnOnce(&CensusReport) -> QueryAnswer,
    ) -> Result<QueryAnswer, SessionError> {
        let answer = self.report_of(snapshot, by)?;
        let QueryAnswer::Report(report) = &*answer else {
            unreachable!("the answer to this key is a report")
        };
        Ok(then(report))
    }

    fn tree(&self, snapshot: SnapshotId) -> Result<SharedDominators, SessionError> {
        let answer = (self.answer)(TaskKey::Query(Query::Dominators { snapshot, filter: String::new() }))?;
        let QueryAnswer::Dominators(tree) = &*answer else {
            unreachable!("the answer to this key is a tree")
        };
        Ok(tree.clone())
    }
}

fn shape(invert: bool, filter: &str) -> TreeOptions {
    let options = TreeOptions::new().invert(invert);
    if filter.is_empty() { options } else { options.filter(filter) }
}

fn tree_map_box(tree: &CensusTree, node: &CensusTreeNode, levels: usize) -> TreeMapBox {
    let below = if levels == 0 { 0 } else { MAX_BOXES };
    let inside = tree.children(node).take(below).map(|child| tree_map_box(tree, child, levels - 1));
    let inside: Vec<_> = inside.collect();
    let rest = tree.children(node).skip(inside.len());
    TreeMapBox {
        name: CensusTreeName::title(node.name.as_ref()),
        bytes: node.total_bytes,
        count: node.total_count,
        left_out: tree.child_count(node) - inside.len(),
        left_out_bytes: rest.map(|child| child.total_bytes).sum(),
        inside,
    }
}
