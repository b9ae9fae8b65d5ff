//! Heap graphs of Firefox's snapshots and of the running Rust program: which objects keep which others alive, with the
//! answers of Firefox's Memory tool.
//!
//! A [`Graph`] holds nodes with shallow sizes and named edges between them, in flat arrays: 32 bytes for each node
//! and 8 for each edge, names not included. An analysis takes a graph and does not know where it came from:
//!
//! - [`snapshot::read`] reads a `.fxsnapshot` and [`snapshot::write`](snapshot::write()) writes one;
//!   [`snapshot::SnapshotWriter`] writes a heap node by node, without a graph in memory.
//! - [`HeapGraph::collect`] walks values of this program with the derive that measures them;
//!   [`HeapGraph::save`] writes them to a file during the walk.
//! - [`live::allocated_blocks`] has all blocks that DMD records in this program, and [`take_census`] takes their census.
//! - [`GraphBuilder`] builds a graph of any other heap.
//!
//! The analyses answer these questions:
//!
//! - [`census`](mod@census): how many nodes and bytes there are for each key of a [`Breakdown`], as a [`CensusTree`]
//!   or as the difference of two reports.
//! - [`dominators`]: the nodes and the bytes that a node alone keeps alive ([`DominatorTree`]); the same by class and for
//!   a selection; the nodes behind a census; leak suspects.
//! - [`paths`]: why a node is alive.
//! - [`export`]: the graph for other tools.
//!
//! Long analyses have a variant with `watched` in its name. It takes an [`AnalysisProgress`], by which
//! another thread sees how far the analysis is, and cancels it.
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
//! - Sums in Firefox wrap at 2^64; here they do not.
//! - Names that look the same are one key here: a type name or a file name that a snapshot holds twice, and frames
//!   that look the same in every report. Firefox loses one of the two. It also loses one of two stacks that a tree
//!   shows as one because only one of them is marked as the system's.
//! - A node of a class called `other` or of a file called `noFilename`, which no census counts there or here, has
//!   no label, but here it has its size.
//! - This crate reads a file name of several bytes that is not UTF-8 as Latin-1; in Firefox every census by file
//!   name fails.
//! - Trees and differences of buckets count their ids; in Firefox they are empty.
//! - Differences take keys such as `constructor` or `__proto__` as any others; Firefox fails on them.
//! - Breakdowns may be arrays here, as Firefox's documents say.
//! - Equal retained sizes have a defined order here; Firefox has none for lists of more than 16 nodes.
//!
//! # What this does not do
//!
//! - A graph of the running program contains what the derive sees. It lacks blocks that no value measures, and
//!   everything behind a lock that another thread holds.

#![deny(unsafe_code)]

mod arrays;
pub mod census;
pub mod dominators;
pub mod export;
pub mod graph;
mod json;
pub mod live;
pub mod paths;
mod platform;
mod prefetch;
mod progress;
pub mod snapshot;
mod sweep;
mod walk;

pub use census::{Breakdown, CensusReport, CensusTree, census};
pub use dominators::DominatorTree;
pub use graph::{Graph, GraphBuilder, HeapNode, NodeId, NodeIndex, NodeParts};
pub use live::{HeapGraph, Roots, answer_snapshots, take_census};
pub use paths::shortest_paths;
pub use progress::{AnalysisProgress, CancelledError};
