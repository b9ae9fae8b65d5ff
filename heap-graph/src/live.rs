//! The graph of the running program, from the same derive that measures its heap.

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

/// The heap of the running program, as far as some values reach.
///
/// Nodes are the heap blocks and the values added as roots. The root has an edge to each of these, with the given name. The id of a
/// block is an address in it, its start where the walk knows that. Where the walk knows no address, as for the block of
/// an empty hash table with capacity, the id is 2^52 or more; two roots that reach such a block by different fields
/// then have a node each. The type of a block is that of the value in it; for a container it is the container's own
/// (`alloc::vec::Vec<u8>`). The class is the type without path and parameters (`Vec`).
///
/// Edges are the fields that lead from block to block (`entries`, `value.name`); parts without a name are called
/// `element`, `key` and `value`. Every `Rc` or `Arc` leads to the one block that they share. `Weak` and references lead
/// to the block that they point into, if the walk met it.
///
/// The walk leaves out a value behind a lock that somebody holds, and records it as skipped.
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
    /// Walks the values that `add_roots` adds.
    pub fn collect(add_roots: impl FnOnce(&mut Roots<'_>)) -> Self {
        Self::collect_with(LiveGraphOptions::default(), add_roots)
    }

    /// Walks the values that `add_roots` adds, with options.
    pub fn collect_with(options: LiveGraphOptions<'_>, add_roots: impl FnOnce(&mut Roots<'_>)) -> Self {
        let live = LiveReading::new(options, |_| CollectedGraph::new());
        let mut roots = Roots(RootsPurpose::Collect(Box::new(MallocSizeOfOps::new(live))));
        add_roots(&mut roots);
        let RootsPurpose::Collect(mut ops) = roots.0 else {
            unreachable!("the purpose of roots does not change")
        };
        let skipped = ops.skipped().to_vec();
        let (collected, descriptions, targets) = ops.into_reading().finish();
        Self { graph: collected.finish(descriptions, &targets, now()), skipped }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph alone, without the list of what the walk skipped.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// The values that the walk could not read.
    pub fn skipped(&self) -> &[SkippedPart] {
        &self.skipped
    }

    /// Writes the graph as a snapshot for Firefox.
    ///
    /// # Errors
    ///
    /// `file` cannot be written.
    pub fn write<W: Write>(&self, file: W, options: &SnapshotWriteOptions) -> io::Result<W> {
        snapshot::write(&self.graph, file, options)
    }
}

/// The time, in microseconds since 1970 UTC.
fn now() -> Option<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(now.as_micros()).ok()
}
