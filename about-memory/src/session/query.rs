//! Queries of a front end about snapshots. Equal queries share one computation.

use heap_graph::Breakdown;
use heap_graph::census::BreakdownError;
use serde::Deserialize;
use thiserror::Error;

use super::id::SnapshotId;

/// A breakdown, a filter or a search has at most this many bytes.
const MAX_TEXT: usize = 4096;
/// One query may request at most this many paths.
const MAX_PATHS: usize = 100;

/// The breakdown of a census: a name of [`Breakdown::PRESETS`], or JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct GroupBy(String);

/// The reason why a text is not a breakdown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GroupByError {
    /// The text has more than 4096 bytes.
    #[error("a breakdown has at most {MAX_TEXT} bytes")]
    TooLong,
    /// The text is neither the name of a breakdown nor a breakdown in JSON.
    #[error(transparent)]
    Breakdown(BreakdownError),
}

impl TryFrom<String> for GroupBy {
    type Error = GroupByError;

    fn try_from(text: String) -> Result<Self, GroupByError> {
        Self::new(&text)
    }
}

impl GroupBy {
    /// Parses the name of a preset, or a breakdown in JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is too long or not a breakdown.
    pub fn new(text: &str) -> Result<Self, GroupByError> {
        if text.len() > MAX_TEXT {
            return Err(GroupByError::TooLong);
        }
        breakdown(text).map_err(GroupByError::Breakdown)?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the text that was parsed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn breakdown(&self) -> Breakdown {
        breakdown(&self.0).expect("the constructor has parsed it")
    }
}

fn breakdown(text: &str) -> Result<Breakdown, BreakdownError> {
    match Breakdown::preset(text) {
        Some(preset) => Ok(preset),
        None => Breakdown::parse(text),
    }
}

/// At most this many snapshots can be side by side.
const MAX_GENERATIONS: usize = 16;

/// A question about snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Query {
    /// The number of nodes and bytes of each group, as a tree.
    Census {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The groups of the census.
        by: GroupBy,
        /// Whether leaves become roots. The groups above a leaf are then below this root.
        #[serde(default)]
        invert: bool,
        /// Keeps only paths through a name that contains this text. An empty text keeps all paths.
        #[serde(default)]
        filter: String,
    },
    /// The census as boxes.
    TreeMap {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The groups of the census.
        by: GroupBy,
        /// The filter, as in `Census`.
        #[serde(default)]
        filter: String,
    },
    /// The difference between two snapshots, as a tree.
    Diff {
        /// The earlier snapshot.
        baseline: SnapshotId,
        /// The later snapshot.
        comparison: SnapshotId,
        /// The groups of both censuses.
        by: GroupBy,
        /// Whether the tree is inverted, as in `Census`.
        #[serde(default)]
        invert: bool,
        /// The filter, as in `Census`.
        #[serde(default)]
        filter: String,
    },
    /// The bytes of each group in each of several snapshots, and its growth from the first to the last, as a tree.
    Generations {
        /// The snapshots, the earliest first; at most 16.
        snapshots: Vec<SnapshotId>,
        /// The groups of all censuses.
        by: GroupBy,
        /// Whether the tree is inverted, as in `Census`.
        #[serde(default)]
        invert: bool,
        /// The filter, as in `Census`.
        #[serde(default)]
        filter: String,
    },
    /// The dominator tree: the nodes that each node alone keeps alive.
    Dominators {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Keeps only nodes whose name contains this text, and the nodes that dominate them. An empty text keeps all
        /// nodes.
        #[serde(default)]
        filter: String,
    },
    /// The retained size of each class: the bytes that its nodes together keep alive.
    Classes {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Keeps only classes whose name contains this text.
        #[serde(default)]
        filter: String,
    },
    /// The nodes behind a group of a census, of a difference or of several censuses.
    Individuals {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The groups of the census.
        by: GroupBy,
        /// Whether the tree of the census is inverted.
        #[serde(default)]
        invert: bool,
        /// The group, by [`SessionRow::id`](super::SessionRow::id).
        group: u64,
        /// Keeps only nodes whose name contains this text.
        #[serde(default)]
        filter: String,
    },
    /// The nodes whose name contains a text, or whose id is the text.
    Search {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The text.
        text: String,
    },
    /// Nodes that keep a large part of the heap alive.
    Suspects {
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// Shortest paths from the root to a node.
    Paths {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The node's id.
        node: u64,
        /// The maximum number of paths.
        max: usize,
    },
}

impl Query {
    /// Returns the kind of the query, as in events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Census { .. } => "census",
            Self::TreeMap { .. } => "tree-map",
            Self::Diff { .. } => "diff",
            Self::Generations { .. } => "generations",
            Self::Dominators { .. } => "dominators",
            Self::Classes { .. } => "classes",
            Self::Individuals { .. } => "individuals",
            Self::Search { .. } => "search",
            Self::Suspects { .. } => "suspects",
            Self::Paths { .. } => "paths",
        }
    }

    /// Returns the snapshots that the query is about.
    pub fn snapshots(&self) -> Vec<SnapshotId> {
        match self {
            Self::Diff { baseline, comparison, .. } => vec![*baseline, *comparison],
            Self::Generations { snapshots, .. } => snapshots.clone(),
            Self::Census { snapshot, .. }
            | Self::TreeMap { snapshot, .. }
            | Self::Dominators { snapshot, .. }
            | Self::Classes { snapshot, .. }
            | Self::Individuals { snapshot, .. }
            | Self::Search { snapshot, .. }
            | Self::Suspects { snapshot }
            | Self::Paths { snapshot, .. } => vec![*snapshot],
        }
    }

    /// Whether the rows of the answer are nodes, so that a front end can show paths to them.
    pub(super) fn is_of_nodes(&self) -> bool {
        matches!(
            self,
            Self::Dominators { .. } | Self::Individuals { .. } | Self::Search { .. } | Self::Suspects { .. }
        )
    }

    /// Returns the name of the quantity that exceeds its limit, and the limit. `None` if the query is within all
    /// limits.
    pub(super) fn excess(&self) -> Option<(&'static str, usize)> {
        match self {
            Self::Census { filter, .. }
            | Self::TreeMap { filter, .. }
            | Self::Diff { filter, .. }
            | Self::Generations { filter, .. }
            | Self::Dominators { filter, .. }
            | Self::Classes { filter, .. }
            | Self::Individuals { filter, .. }
                if filter.len() > MAX_TEXT =>
            {
                Some(("bytes of a filter", MAX_TEXT))
            }
            Self::Generations { snapshots, .. } if snapshots.len() > MAX_GENERATIONS => {
                Some(("snapshots", MAX_GENERATIONS))
            }
            Self::Search { text, .. } if text.len() > MAX_TEXT => {
                Some(("bytes of the searched text", MAX_TEXT))
            }
            Self::Paths { max, .. } if *max > MAX_PATHS => Some(("paths", MAX_PATHS)),
            _ => None,
        }
    }
}
