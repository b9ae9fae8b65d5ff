//! Heap graphs of Firefox's snapshots and of the running Rust program. They show which objects keep others alive. The
//! results equal the results of Firefox's Memory tool.
//!
//! A [`Graph`] contains nodes with shallow sizes and named edges between them, in flat arrays: 32 bytes for each node
//! and 8 for each edge, without names. An analysis accepts a graph from any source:
//!
//! - [`snapshot::read`] reads a `.fxsnapshot`, and [`snapshot::write`](snapshot::write()) writes one.
//!   [`snapshot::SnapshotWriter`] writes a heap node by node, without a graph in memory.
//! - [`HeapGraph::collect`] walks values of this program with the derive that measures them. [`HeapGraph::save`]
//!   writes them to a file during the walk.
//! - [`live::allocated_blocks`] returns all blocks that DMD records in this program, and [`take_census`] takes their
//!   census.
//! - [`GraphBuilder`] builds a graph of any other heap.
//!
//! The analyses answer these questions:
//!
//! - [`census`](mod@census): the number of nodes and bytes for each key of a [`Breakdown`], as a [`CensusTree`] or as
//!   the difference of two reports.
//! - [`dominators`]: the nodes and the bytes that a node keeps alive alone ([`DominatorTree`]), or that a class or a
//!   selection keeps alive; the nodes behind a census; leak suspects.
//! - [`paths`]: the paths that keep a node alive.
//! - [`export`]: the graph for other tools.
//!
//! Long analyses have a variant with `watched` in its name. It takes an [`AnalysisProgress`]. With it, another thread
//! can read the progress of the analysis, and cancel it.
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
//! - Names that look the same are one key here: a type name or a file name that a snapshot contains twice, and frames
//!   that look the same in every report. Firefox loses the counts of one of the two equal names. If two stacks differ
//!   only in the mark of system frames, a tree shows them as one. Firefox loses the counts of one of these stacks.
//! - A census by class does not count a node of a class called `other`, and a census by file does not count a node of a
//!   file called `noFilename`, in Firefox or here. In a dominator tree, such a node has no label. In Firefox, it also
//!   lacks its size.
//! - This crate reads a file name that is not UTF-8 as Latin-1. In Firefox, if such a name has two or more bytes, every
//!   census by file name fails.
//! - Trees and differences of buckets count the ids of the buckets. In Firefox, these trees and differences are empty.
//! - Differences treat keys such as `constructor` or `__proto__` like all others; Firefox fails on them.
//! - Breakdowns may be arrays here, as in Firefox's documentation.
//! - Equal retained sizes have a defined order here. In Firefox, the order is undefined in lists of more than 16
//!   nodes.
//!
//! # What this does not do
//!
//! - A [`HeapGraph`] contains only memory that the derive measures. It lacks blocks that no value measures, and values
//!   behind a lock that another thread holds.

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
