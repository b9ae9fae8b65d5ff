//! Builds graphs of the running program: of the values that the derive measures ([`HeapGraph`]), or of the blocks that
//! DMD records ([`allocated_blocks`]).

mod answer;
mod blocks;
mod collected_graph;
mod descriptions;
mod dmd_sites;
mod field_path;
mod found_node;
mod naming;
mod nodes;
mod options;
mod reading;
mod roots;
mod save;
mod sink;
mod sites;
mod stream;

pub use answer::{SNAPSHOT_REQUEST, answer_snapshots};
pub use blocks::{NotRecording, TakeCensusError, allocated_blocks, take_census};
pub use naming::{BlockTypes, coarse_type};
pub use options::LiveGraphOptions;
pub use roots::Roots;
pub use save::SavedSnapshot;
pub use sites::{AllocationSites, SiteFrame};

use std::io::{self, Write};
use std::time::SystemTime;

use memory_report::SkippedPart;
use memory_reporter::MallocSizeOfOps;

use crate::graph::Graph;
use crate::snapshot::{self, SnapshotWriteOptions};
use collected_graph::CollectedGraph;
use reading::LiveReading;
use roots::RootsPurpose;

/// The heap of the running program that some values reach.
///
/// Nodes are the heap blocks, and the values added as roots. The root of the graph has an edge, with the given name,
/// to each of these values. The id of a block is an address in the block: its start, if the walk knows the start. For
/// some blocks the walk knows no address, such as the block of an empty hash table with capacity. The ids of these
/// blocks are 2^52 or more. If two roots reach one of these blocks by different fields, each root has its own node for
/// the block. The type of a block is the type of the value in the block. For a container, it is the container's type
/// (`alloc::vec::Vec<u8>`). The class is the type without path and parameters (`Vec`).
///
/// Edges are the fields that lead from block to block (`entries`, `value.name`). Parts without a name are called
/// `element`, `key` and `value`. All `Rc` and `Arc` pointers to one value lead to the same block. `Weak` pointers and
/// references lead to the block that they point into, if the walk met this block.
///
/// The walk leaves out a value behind a held lock, and records it as skipped.
///
/// ```
/// use heap_graph::{Breakdown, HeapGraph, NodeIndex, census};
/// use memory_reporter::MallocSizeOf;
///
/// #[derive(MallocSizeOf)]
/// struct Index {
///     names: Vec<String>,
/// }
///
/// let index = Index { names: vec!["a".into(), "bc".into()] };
/// let heap = HeapGraph::collect(|roots| roots.add("index", &index));
/// let report = census(heap.graph(), &Breakdown::preset("coarseType").unwrap()).unwrap();
/// assert_eq!(report.get("strings").unwrap().to_json(), r#"{"count":2,"bytes":3}"#);
/// ```
#[derive(Debug)]
pub struct HeapGraph {
    graph: Graph,
    skipped: Vec<SkippedPart>,
}

impl HeapGraph {
    /// Walks the values that `add_roots` adds, and returns their graph.
    pub fn collect(add_roots: impl FnOnce(&mut Roots<'_>)) -> Self {
        Self::collect_with(LiveGraphOptions::default(), add_roots)
    }

    /// Like [`collect`](Self::collect), with options.
    pub fn collect_with(options: LiveGraphOptions<'_>, add_roots: impl FnOnce(&mut Roots<'_>)) -> Self {
        let live = LiveReading::new(options, |_| CollectedGraph::new());
        let mut roots = Roots(RootsPurpose::Collect(Box::new(MallocSizeOfOps::new(live))));
        add_roots(&mut roots);
        let RootsPurpose::Collect(mut ops) = roots.0 else { unreachable!("the purpose of roots is fixed") };
        let skipped = ops.skipped().to_vec();
        let (collected, descriptions, targets) = ops.into_reading().finish();
        Self { graph: collected.finish(descriptions, &targets, now()), skipped }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the graph alone, without the list of skipped parts.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// The values that the walk could not measure.
    pub fn skipped(&self) -> &[SkippedPart] {
        &self.skipped
    }

    /// Writes the graph as a snapshot for Firefox.
    ///
    /// # Errors
    ///
    /// Returns an error if `file` cannot be written.
    pub fn write<W: Write>(&self, file: W, options: &SnapshotWriteOptions) -> io::Result<W> {
        snapshot::write(&self.graph, file, options)
    }
}

/// The current time, in microseconds since 1970 UTC.
fn now() -> Option<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(now.as_micros()).ok()
}
