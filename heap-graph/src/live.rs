//! The graph of the running program, from the same derive that measures its heap.

mod answer;
mod dmd;
mod naming;
mod reading;
mod save;
mod stream;

pub use answer::{SNAPSHOT_REQUEST, answer_snapshots};
pub use naming::{BlockTypes, coarse_type};
pub use save::Saved;

use core::fmt;
use core::panic::AssertUnwindSafe;
use std::io::{self, Write};
use std::panic::{catch_unwind, resume_unwind};
use std::time::SystemTime;

use memory_report::{SkipReason, Skipped};
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, bridge};

use crate::coarse_type::CoarseType;
use crate::graph::Graph;
use crate::snapshot::{self, WriteOptions};
use reading::Live;

/// Where blocks were allocated: what a heap profiler can add to a live graph.
pub trait AllocationSites {
    /// The site that allocated the block with this address in it, if it is known.
    ///
    /// A number, so that equal stacks need not be made anew for each block.
    fn site(&self, address: usize) -> Option<u64>;

    /// The frames of a site, the youngest first.
    fn frames(&self, site: u64) -> Vec<SiteFrame>;
}

/// A frame of an allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a profiler fills it in, field by field")]
pub struct SiteFrame {
    /// The function, if it is known.
    pub function: Option<String>,
    /// The source file, or what else is known of the place, such as an address.
    pub source: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Whether the frame belongs to the system and not to the program.
    pub is_system: bool,
}

/// How a live graph is made.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct LiveOptions<'a> {
    /// What blocks are, roughly; [`coarse_type`] by default. A program that knows better calls that for what it does
    /// not know.
    pub coarse_type: fn(&BlockTypes<'_>) -> CoarseType,
    /// Where blocks were allocated; by default, and with `None`, what DMD knows if it records this process.
    pub allocation_sites: Option<&'a dyn AllocationSites>,
}

impl fmt::Debug for LiveOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveOptions").finish_non_exhaustive()
    }
}

impl Default for LiveOptions<'_> {
    fn default() -> Self {
        Self { coarse_type, allocation_sites: None }
    }
}

impl<'a> LiveOptions<'a> {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`coarse_type`](Self::coarse_type).
    pub fn coarse_type(mut self, coarse_type: fn(&BlockTypes<'_>) -> CoarseType) -> Self {
        self.coarse_type = coarse_type;
        self
    }

    /// Sets [`allocation_sites`](Self::allocation_sites).
    pub fn allocation_sites(mut self, sites: &'a dyn AllocationSites) -> Self {
        self.allocation_sites = Some(sites);
        self
    }

    /// Leaves out where blocks were allocated, even if DMD knows.
    pub fn without_allocation_sites(self) -> Self {
        self.allocation_sites(&dmd::Nowhere)
    }

    fn sites(&self) -> Option<&'a dyn AllocationSites> {
        let dmd = || bridge::is_connected().then_some(&dmd::Dmd as &dyn AllocationSites);
        self.allocation_sites.or_else(dmd)
    }
}

/// The heap of the running program, as far as some values reach.
///
/// Nodes are heap blocks, and the values told, which hang from the root by the names given. The id
/// of a block is its address. Its type is that of the value in it, for a container the
/// container's own (`alloc::vec::Vec<u8>`), and the class is the type without path and
/// parameters (`Vec`).
///
/// Edges are the fields that lead from block to block (`entries`, `value.name`); parts without a
/// name are called `element`, `key` and `value`. `Rc` and `Arc` lead to the block they share,
/// however many there are; `Weak` and references to the block they point into, if the walk met
/// it.
///
/// A walk follows what it may look at: a lock that is held is left out, and recorded as skipped.
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
    skipped: Vec<Skipped>,
}

impl HeapGraph {
    /// Walks the values that `tell` adds.
    pub fn collect(tell: impl FnOnce(&mut Roots<'_>)) -> Self {
        Self::collect_with(LiveOptions::default(), tell)
    }

    /// Walks the values that `tell` adds, with options.
    pub fn collect_with(options: LiveOptions<'_>, tell: impl FnOnce(&mut Roots<'_>)) -> Self {
        let ops = Box::new(MallocSizeOfOps::new(Live::new(options)));
        let mut roots = Roots(What::Walk { ops, at_most: usize::MAX });
        tell(&mut roots);
        let mut ops = roots.0.into_walk().expect("it was made above");
        let skipped = ops.skipped().to_vec();
        let graph = ops.into_reading().finish(now()).expect("a graph was asked for");
        Self { graph, skipped }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph, without what is said of the walk.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// What the walk could not look at.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Writes the graph as a snapshot, which Firefox reads, too.
    ///
    /// # Errors
    ///
    /// Of the file.
    pub fn write<W: Write>(&self, file: W, options: &WriteOptions) -> io::Result<W> {
        snapshot::write(&self.graph, file, options)
    }
}

/// The values that a live graph starts from.
pub struct Roots<'a>(What<'a>);

/// What is done with the values.
enum What<'a> {
    /// They are walked, as many as there may be.
    Walk { ops: Box<MallocSizeOfOps<Live<'a>>>, at_most: usize },
    /// Their names are noted.
    Name(Vec<String>),
}

impl<'a> What<'a> {
    fn into_walk(self) -> Option<Box<MallocSizeOfOps<Live<'a>>>> {
        match self {
            Self::Walk { ops, .. } => Some(ops),
            Self::Name(_) => None,
        }
    }

    fn into_names(self) -> Vec<String> {
        match self {
            Self::Walk { .. } => Vec::new(),
            Self::Name(names) => names,
        }
    }
}

fn now() -> Option<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(now.as_micros()).ok()
}

impl fmt::Debug for Roots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").finish_non_exhaustive()
    }
}

impl Roots<'_> {
    /// Adds a value, which hangs from the root by `name`. Its own bytes count as 0: what is not in
    /// a block of its own is not on the heap.
    ///
    /// # Panics
    ///
    /// If the value's own code panics while it is walked. Who catches that may add other values: what was
    /// met so far stays, and the value is among those skipped.
    pub fn add<T: MallocSizeOf + ?Sized>(&mut self, name: &str, value: &T) {
        match &mut self.0 {
            What::Name(names) => names.push(name.to_owned()),
            What::Walk { at_most: 0, .. } => {}
            What::Walk { ops, at_most } => {
                if ops.reading().has_failed() {
                    return;
                }
                *at_most -= 1;
                ops.reading().open_root(name, core::any::type_name::<T>, value);
                let walked = catch_unwind(AssertUnwindSafe(|| value.size_of_excluding_this(ops)));
                ops.reading().close_root();
                if let Err(panic) = walked {
                    ops.skip::<T>(SkipReason::Panicked);
                    resume_unwind(panic);
                }
            }
        }
    }
}
