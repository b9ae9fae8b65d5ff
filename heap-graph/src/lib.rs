//! Heap graphs: snapshots, census, dominators and shortest paths, with the answers of Firefox.
#![deny(unsafe_code)]

mod breakdown;
mod census;
mod coarse_type;
mod diff;
mod dominators;
mod error;
mod frame;
mod graph;
mod individuals;
mod live;
mod paths;
mod report;
mod retained;
pub mod snapshot;
mod suspects;
mod text;
mod tree;
mod walk;
mod worker;

pub use breakdown::{Breakdown, BreakdownError};
pub use census::{CensusError, census, census_of, describe_node};
pub use coarse_type::CoarseType;
pub use diff::Difference;
pub use dominators::{DominatorTree, DominatorTreeNode, FetchOptions, Fetched};
pub use error::{GraphError, MessageError, Problem, SnapshotError};
pub use frame::{FrameId, FrameParts};
pub use graph::{Edge, Graph, GraphBuilder, Node, NodeId, NodeIndex, NodeParts, Stack};
pub use individuals::{MAX_INDIVIDUALS, individuals};
pub use live::{AllocationSites, BlockTypes, HeapGraph, LiveOptions, Roots, SiteFrame, coarse_type};
pub use paths::{MergedPaths, Path, PathPart, ShortestPaths, k_shortest_paths, shortest_paths};
pub use report::{Count, Frame, Key, Report, ReportFrame, StackKey};
pub use retained::{ClassSizes, RetainedSet, sizes_by_class};
pub use suspects::{Accumulation, Suspect, SuspectOptions, suspects};
pub use text::{Text, TextId};
pub use tree::{CensusTree, CensusTreeNode, Name, TreeOptions};
pub use worker::{
    HeapAnalysesClient, HeapAnalysesWorker, Pending, Progress, SnapshotState, SnapshotSummary, WorkerError,
};
