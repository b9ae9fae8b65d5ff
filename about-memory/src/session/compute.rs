//! How each query is answered.

use std::collections::HashSet;
use std::sync::Arc;

use heap_graph::census::{CensusDifference, CensusError, CensusTreeNode, TreeOptions, census_watched};
use heap_graph::dominators::{
    MAX_INDIVIDUALS, SharedDominators, SuspectOptions, individuals_watched, suspects,
};
use heap_graph::paths::shortest_paths_watched;
use heap_graph::{Cancelled, CensusReport, CensusTree, Graph, Node, NodeId, NodeIndex, Progress};

use super::answer::{Answer, PathStep, TreeMapBox};
use super::error::SessionError;
use super::generations::{Generations, census_name};
use super::id::SnapshotId;
use super::query::{GroupBy, Query};

/// The most levels of a tree map, and the most boxes in a box.
const MAX_LEVELS: usize = 5;
const MAX_BOXES: usize = 60;
/// A search looks at the progress once for this many nodes.
const LOOK: usize = 4096;

/// What the cache has an answer for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Query(Query),
    /// The groups of a census, from which come trees, tree maps and differences.
    Report(SnapshotId, GroupBy),
}

impl Key {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Query(query) => query.kind(),
            Self::Report(..) => "report",
        }
    }

    pub(super) fn is_about(&self, snapshot: SnapshotId) -> bool {
        match self {
            Self::Query(query) => query.snapshots().contains(&snapshot),
            Self::Report(of, _) => *of == snapshot,
        }
    }
}

/// What a computation may ask for.
pub(super) struct Needs<'a> {
    pub(super) graph: &'a dyn Fn(SnapshotId) -> Result<Arc<Graph>, SessionError>,
    /// The answer to another key.
    pub(super) answer: &'a dyn Fn(Key) -> Result<Arc<Answer>, SessionError>,
    /// The dominator tree that the computation needs is there.
    pub(super) has_tree: &'a dyn Fn(),
    pub(super) progress: &'a Progress,
}

impl From<CensusError> for SessionError {
    fn from(error: CensusError) -> Self {
        match error {
            CensusError::Cancelled => Self::Cancelled,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<Cancelled> for SessionError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

pub(super) fn compute(key: &Key, needs: &Needs<'_>) -> Result<Answer, SessionError> {
    let query = match key {
        Key::Report(snapshot, by) => {
            let graph = (needs.graph)(*snapshot)?;
            return Ok(Answer::Report(census_watched(&graph, &by.breakdown(), needs.progress)?));
        }
        Key::Query(query) => query,
    };
    match query {
        Query::Census { snapshot, by, invert, filter } => needs
            .report(*snapshot, by, |report| Answer::Tree(CensusTree::new(report, &shape(*invert, filter)))),
        Query::TreeMap { snapshot, by } => needs.report(*snapshot, by, |report| {
            let tree = CensusTree::new(report, &TreeOptions::new());
            Answer::TreeMap(tree_map_box(&tree, tree.root(), MAX_LEVELS))
        }),
        Query::Diff { baseline, comparison, by, invert, filter } => {
            let second = needs.report_of(*comparison, by)?;
            needs.report(*baseline, by, |first| {
                let Answer::Report(second) = &*second else { unreachable!("a report answers such a key") };
                let difference = CensusDifference::new(first, second);
                Answer::Tree(CensusTree::of_difference(&difference, &shape(*invert, filter)))
            })
        }
        Query::Generations { snapshots, by, invert, filter } => {
            let mut trees = Vec::new();
            for snapshot in snapshots {
                let answer = needs.report_of(*snapshot, by)?;
                let Answer::Report(report) = &*answer else { unreachable!("a report answers such a key") };
                trees.push(CensusTree::new(report, &shape(*invert, filter)));
            }
            // The groups of an inverted tree have their leaves' numbers.
            let amount = |node: &CensusTreeNode| if *invert { node.bytes } else { node.total_bytes };
            Ok(Answer::Generations(Generations::new(&trees, amount)))
        }
        Query::Dominators { snapshot } => {
            let tree = SharedDominators::watched((needs.graph)(*snapshot)?, needs.progress)?;
            // The lists of children are part of what takes time; nobody waits for them later.
            tree.tree().prepare_lists(needs.progress)?;
            Ok(Answer::Dominators(tree))
        }
        Query::Individuals { snapshot, by, leaves } => {
            let tree = needs.tree(*snapshot)?;
            let leaves: HashSet<u64> = leaves.iter().copied().collect();
            let of_tree = tree.tree();
            let is_wanted = |leaf| leaves.contains(&leaf);
            let all = individuals_watched(&of_tree, &by.breakdown(), is_wanted, usize::MAX, needs.progress)?;
            let nodes = all.iter().take(MAX_INDIVIDUALS).map(|node| node.index()).collect();
            Ok(Answer::Nodes { nodes, found: all.len(), tree: tree.clone() })
        }
        Query::Search { snapshot, text } => search(&needs.tree(*snapshot)?, text, needs.progress),
        Query::Suspects { snapshot } => {
            let tree = needs.tree(*snapshot)?;
            let found = suspects(&tree.tree(), &SuspectOptions::new());
            let ids = found.iter().flat_map(|suspect| suspect.nodes.iter().take(MAX_INDIVIDUALS));
            let nodes: Vec<_> =
                ids.filter_map(|id| tree.graph().find(*id)).map(|node| node.index()).collect();
            Ok(Answer::Nodes { found: nodes.len(), nodes, tree: tree.clone() })
        }
        Query::Paths { snapshot, node, max } => {
            paths(&*(needs.graph)(*snapshot)?, *node, *max, needs.progress)
        }
    }
}

impl Needs<'_> {
    fn report_of(&self, snapshot: SnapshotId, by: &GroupBy) -> Result<Arc<Answer>, SessionError> {
        (self.answer)(Key::Report(snapshot, by.clone()))
    }

    fn report(
        &self,
        snapshot: SnapshotId,
        by: &GroupBy,
        then: impl FnOnce(&CensusReport) -> Answer,
    ) -> Result<Answer, SessionError> {
        let answer = self.report_of(snapshot, by)?;
        let Answer::Report(report) = &*answer else { unreachable!("a report answers such a key") };
        Ok(then(report))
    }

    fn tree(&self, snapshot: SnapshotId) -> Result<SharedDominators, SessionError> {
        let answer = (self.answer)(Key::Query(Query::Dominators { snapshot }))?;
        let Answer::Dominators(tree) = &*answer else { unreachable!("a tree answers such a key") };
        (self.has_tree)();
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
    TreeMapBox {
        name: census_name(node.name.as_ref()),
        bytes: node.total_bytes,
        count: node.total_count,
        left_out: tree.child_count(node) - inside.len(),
        inside,
    }
}

/// The nodes whose title contains the text, or whose id it is.
fn search(tree: &SharedDominators, text: &str, progress: &Progress) -> Result<Answer, SessionError> {
    let of_tree = tree.tree();
    let id = text.strip_prefix("@").unwrap_or(text).trim();
    let id = match id.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => id.parse().ok(),
    };
    let mut all: Vec<NodeIndex> = Vec::new();
    for (place, node) in tree.graph().nodes().enumerate() {
        if place % LOOK == 0 && progress.is_cancelled() {
            return Err(SessionError::Cancelled);
        }
        let is_named = || !text.is_empty() && node.title().contains(text);
        if (id == Some(node.id().0) || is_named()) && of_tree.is_reachable(node.index()) {
            all.push(node.index());
        }
    }
    all.sort_by_cached_key(|node| core::cmp::Reverse(of_tree.retained_size(*node)));
    let found = all.len();
    all.truncate(MAX_INDIVIDUALS);
    Ok(Answer::Nodes { tree: tree.clone(), nodes: all, found })
}

fn paths(graph: &Graph, node: u64, max: usize, progress: &Progress) -> Result<Answer, SessionError> {
    let target = graph.find(NodeId(node)).ok_or(SessionError::NoNode(node))?;
    let found = shortest_paths_watched(graph, NodeIndex::ROOT, &[target.index()], max, progress)?;
    let title = |node: Node<'_>| node.title().to_string();
    let name = |id: NodeId| graph.find(id).map(title).unwrap_or_default();
    let (_, all) = found.paths.into_iter().next().ok_or(SessionError::NotReachable(node))?;
    let all = all.into_iter().map(|path| {
        let step = |part: heap_graph::paths::PathPart<'_>| PathStep {
            node: part.predecessor.0,
            name: name(part.predecessor),
            edge: part.edge.map(|edge| edge.to_string()),
        };
        let end = PathStep { node, name: title(target), edge: None };
        path.into_iter().map(step).chain([end]).collect()
    });
    Ok(Answer::Paths(all.collect()))
}
