//! Heap graphs: what keeps what alive, from snapshots of Firefox or from the running Rust program,
//! with the answers of Firefox's Memory tool.
//!
//! A [`Graph`] has nodes with shallow sizes and named edges between them, in flat arrays: 32 bytes a
//! node and 8 an edge beside names. Analyses take a graph and do not know where it came from:
//!
//! - [`snapshot::read`] reads a `.fxsnapshot`, and [`snapshot::write`](snapshot::write()) writes one;
//!   [`snapshot::SnapshotWriter`] writes one of a heap that is no graph yet.
//! - [`HeapGraph::collect`] walks values of this program, by the derive that measures them;
//!   [`HeapGraph::save`] writes them to a file meanwhile.
//! - [`GraphBuilder`] takes any other heap.
//!
//! and answer
//!
//! - [`census`](census()): how many nodes and bytes, by a [`Breakdown`]; as a [`CensusTree`]; what changed
//!   ([`Difference`]); which nodes ([`individuals`](individuals())).
//! - [`DominatorTree`]: what keeps what alive alone, and how many bytes; by class ([`sizes_by_class`]), of
//!   a selection ([`RetainedSet`]), and what is suspicious ([`suspects`](suspects())).
//! - [`shortest_paths`] and [`k_shortest_paths`]: why a node is alive.
//! - [`Neighbourhood`] and [`write_v8`]: for other tools.
//!
//! [`HeapAnalysesClient`] answers on a thread of its own what the Memory tool asks: censuses, their differences
//! and individuals, dominators, shortest paths.
//!
//! ```
//! use heap_graph::{Breakdown, DominatorTree, HeapGraph, NodeIndex, census};
//! use memory_reporter::MallocSizeOf;
//!
//! #[derive(MallocSizeOf)]
//! struct Cache {
//!     pages: Vec<String>,
//! }
//!
//! let cache = Cache { pages: vec!["first page".into(), "second".into()] };
//! let heap = HeapGraph::collect(|roots| roots.add("cache", &cache));
//!
//! let report = census(heap.graph(), &Breakdown::preset("objectClass").unwrap()).unwrap();
//! assert_eq!(report.get("other").unwrap().to_json(), r#"{"count":2,"bytes":16}"#);
//!
//! let tree = DominatorTree::new(heap.graph());
//! let biggest = tree.immediately_dominated(NodeIndex::ROOT).next().unwrap();
//! assert_eq!(biggest.class_name().unwrap(), "Cache");
//! assert_eq!(tree.retained_size(biggest.index()), Some(2 * size_of::<String>() as u128 + 16));
//! ```
//!
//! # Where Firefox answers differently
//!
//! - Its sums wrap at 2^64; ours do not.
//! - What looks the same is one key here: a type name or a file name that a snapshot holds twice, frames that
//!   differ in nothing that is shown. There, one of the two is lost; and of two stacks that a tree shows as one,
//!   since only the system is in one of them, too.
//! - A node of a class called `other` or of a file called `noFilename`, which no census counts there or here, has
//!   no label, but here it has its size.
//! - A file name of several bytes that is no UTF-8 is read as Latin-1; there, no census by file name succeeds.
//! - Trees and differences of buckets count their ids; there, they are empty.
//! - Differences take keys such as `constructor` or `__proto__` as any others; there, they break on them.
//! - Breakdowns may be arrays here, as its documents have it.
//! - Equal retained sizes have a defined order here, which there lists of 16 nodes and more have not.
//!
//! # What this does not do
//!
//! - Of the running program it sees what the derive sees: blocks that nobody measures are in no
//!   graph, nor is anything behind a lock that is held.

#![deny(unsafe_code)]

mod breakdown;
mod census;
mod coarse_type;
mod diff;
mod dominators;
mod error;
mod export;
mod frame;
mod graph;
mod huge;
mod individuals;
mod live;
mod paths;
mod prefetch;
mod progress;
mod report;
mod retained;
pub mod snapshot;
mod suspects;
mod sweep;
mod text;
mod tree;
mod walk;
mod whole_file;
mod worker;

pub use breakdown::{Breakdown, BreakdownError};
pub use census::{CensusError, census, census_of, census_watched, describe_node};
pub use coarse_type::CoarseType;
pub use diff::Difference;
pub use dominators::{DominatorTree, DominatorTreeNode, FetchOptions, Fetched};
pub use error::{GraphError, MessageError, Problem, SnapshotError};
pub use export::{Neighbourhood, NeighbourhoodOptions, write_v8};
pub use frame::{FrameId, FrameParts};
pub use graph::{Edge, Graph, GraphBuilder, Node, NodeId, NodeIndex, NodeParts, Stack};
pub use individuals::{MAX_INDIVIDUALS, individuals, individuals_watched};
pub use live::{
    AllocationSites, BlockTypes, HeapGraph, LiveOptions, Roots, SNAPSHOT_REQUEST, Saved, SiteFrame,
    answer_snapshots, coarse_type,
};
pub use paths::{
    MergedPaths, Path, PathPart, ShortestPaths, k_shortest_paths, shortest_paths, shortest_paths_watched,
};
pub use progress::{Cancelled, Progress};
pub use report::{Count, Frame, Key, Report, ReportFrame, StackKey};
pub use retained::{ClassSizes, RetainedSet, sizes_by_class};
pub use suspects::{Accumulation, Suspect, SuspectOptions, suspects};
pub use text::{Text, TextId};
pub use tree::{CensusTree, CensusTreeNode, Name, TreeOptions};
pub use worker::{
    HeapAnalysesClient, HeapAnalysesWorker, Pending, SnapshotState, SnapshotSummary, WorkerError,
};
