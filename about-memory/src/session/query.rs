//! Queries: what a front end asks of snapshots. Equal queries share one computation.

use core::fmt;

use heap_graph::Breakdown;
use heap_graph::census::BreakdownError;
use serde::Deserialize;

use super::id::SnapshotId;

/// The longest breakdown, filter or search, in bytes.
const MAX_TEXT: usize = 4096;
/// The most paths that one query asks for.
const MAX_PATHS: usize = 100;

/// How a census groups nodes: a name of [`Breakdown::PRESETS`], or a breakdown as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct GroupBy(String);

/// Why a text is not a breakdown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupByError {
    /// The text has more than 4096 bytes.
    TooLong,
    /// It is neither the name of a breakdown nor a breakdown.
    Breakdown(BreakdownError),
}

impl fmt::Display for GroupByError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a breakdown has at most {MAX_TEXT} bytes"),
            Self::Breakdown(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GroupByError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Breakdown(error) => Some(error),
            Self::TooLong => None,
        }
    }
}

impl TryFrom<String> for GroupBy {
    type Error = GroupByError;

    fn try_from(text: String) -> Result<Self, GroupByError> {
        Self::new(&text)
    }
}

impl GroupBy {
    /// A preset by its name, or a breakdown in JSON.
    ///
    /// # Errors
    ///
    /// [`GroupByError`].
    pub fn new(text: &str) -> Result<Self, GroupByError> {
        if text.len() > MAX_TEXT {
            return Err(GroupByError::TooLong);
        }
        breakdown(text).map_err(GroupByError::Breakdown)?;
        Ok(Self(text.to_owned()))
    }

    /// The text that made it.
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

/// The most snapshots side by side.
const MAX_GENERATIONS: usize = 16;

/// A question about snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Query {
    /// How many nodes and bytes there are in each group, as a tree.
    Census {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The groups.
        by: GroupBy,
        /// Whether leaves become roots, with the groups that led to them below.
        #[serde(default)]
        invert: bool,
        /// Keeps only paths through a name that contains this text; keeps all if it is empty.
        #[serde(default)]
        filter: String,
    },
    /// The census as boxes.
    TreeMap {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The groups.
        by: GroupBy,
        /// As in a census.
        #[serde(default)]
        filter: String,
    },
    /// What changed between two snapshots, as a tree.
    Diff {
        /// The earlier snapshot.
        baseline: SnapshotId,
        /// The later snapshot.
        comparison: SnapshotId,
        /// The groups.
        by: GroupBy,
        /// As in a census.
        #[serde(default)]
        invert: bool,
        /// As in a census.
        #[serde(default)]
        filter: String,
    },
    /// What each group has in each of several snapshots, and how much it grew from the first to the last, as a tree.
    Generations {
        /// The snapshots, the earliest first; from 2 to 16.
        snapshots: Vec<SnapshotId>,
        /// The groups.
        by: GroupBy,
        /// As in a census.
        #[serde(default)]
        invert: bool,
        /// As in a census.
        #[serde(default)]
        filter: String,
    },
    /// Which node alone keeps which others alive.
    Dominators {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Keeps only nodes whose name contains this text, and those that dominate them; keeps all if it is empty.
        #[serde(default)]
        filter: String,
    },
    /// What the nodes of each class keep alive together.
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
        /// As in the census.
        #[serde(default)]
        invert: bool,
        /// The group, by [`SessionRow::id`](super::SessionRow::id).
        group: u64,
        /// Keeps only nodes whose name contains this text.
        #[serde(default)]
        filter: String,
    },
    /// The nodes whose name contains a text or whose id it is.
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
        /// At most this many.
        max: usize,
    },
}

impl Query {
    /// The kind of query, as in events.
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

    /// The snapshots that it asks about.
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

    /// Whether the answer has nodes, to which a front end shows paths.
    pub(super) fn is_of_nodes(&self) -> bool {
        matches!(
            self,
            Self::Dominators { .. } | Self::Individuals { .. } | Self::Search { .. } | Self::Suspects { .. }
        )
    }

    /// What is out of bounds, and the bound.
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
            Self::Search { text, .. } if text.len() > MAX_TEXT => Some(("bytes of a text", MAX_TEXT)),
            Self::Paths { max, .. } if *max > MAX_PATHS => Some(("paths", MAX_PATHS)),
            _ => None,
        }
    }
}
