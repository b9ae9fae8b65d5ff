//! The one engine of the process: every hook ends here, and every dump starts here.
//!
//! Functions for hooks neither allocate nor panic, take no global lock and keep `errno` (functions that make a
//! system call restore it). Because of the guard [`Inside`], the engine does not record allocations that it causes
//! itself, in the loader for example. A signal handler may interrupt a thread inside, which may hold a lock. So the
//! engine takes no lock for what the handler allocates, frees and reports, and its blocks have no stack.
//!
//! A program that recovers from a stack overflow jumps out of the hook. So hooks check that the stack has room
//! before a step that must not stay half done. The engine counts what is lost.

mod block_ends;
mod block_starts;
mod counts;
mod marking;
mod phase;
mod sampling;
mod start;
mod usable;
mod waiting;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use crate::options::Options;
use crate::system::lock::Lock;
use crate::system::slot::{self, Inside};
use crate::tables::block_table::Table;
use crate::tables::dead_blocks::DeadBlocks;
use crate::tables::header::Header;
use crate::tables::mark::Marks;
use crate::tables::peak::Peak;
use crate::tables::runs::Runs;
use crate::tables::sample_filter::SampleFilter;
use crate::tables::statistics::Counts;
use crate::tables::trace_tree::TraceTree;
pub use block_ends::BlockMove;
pub(crate) use marking::{MarkOptions, MarkOutcome, OfAllocator};
use phase::AtomicPhase;
pub(crate) use phase::Phase;
pub(crate) use start::Setup;
pub(crate) use usable::{SizeOf, Usable};

pub(crate) static ENGINE: Engine = Engine::new();

// The engine's large tables. They are zero at first, so that they take addresses, but no bytes of the file.
static TABLE: Table = Table::new();
static TREE: TraceTree = TraceTree::new();
#[used]
static HEADER: Header = Header::new(&HEADER, &TABLE, &TREE, ENGINE.phase.number(), &ENGINE.below);
static PEAK: Peak = Peak::new();
static SAMPLED: SampleFilter = SampleFilter::new();

pub(crate) struct Engine {
    phase: AtomicPhase,
    /// The number of the session of sampling by bytes; [`NO_SESSION`](sampling::NO_SESSION) while the engine takes no sample.
    session: AtomicU32,
    /// Sessions so far.
    sessions: AtomicU32,
    /// The mean distance in bytes of the samples; 0 if the engine does not sample by bytes.
    mean: AtomicUsize,
    full: AtomicBool,
    /// The engine samples blocks of fewer usable bytes; 0 if the engine records every block.
    below: AtomicUsize,
    cumulative: AtomicBool,
    marking: AtomicBool,
    /// The engine looks at freed blocks: it counts them, or a reporter may have reported them.
    watches_frees: AtomicBool,
    dropped: AtomicU64,
    dropped_dead: AtomicU64,
    unmarked: AtomicU64,
    /// What no thread counts for itself.
    counts: Counts,
    pub(crate) dead: DeadBlocks,
    pub(crate) marks: Marks,
    pub(crate) runs: Runs,
    /// Held by the thread that writes a dump.
    pub(crate) dumping: Lock,
    setup: UnsafeCell<Setup>,
}

// SAFETY: `start` writes `setup` before the phase says that the engine is on, and tests write it when no other
// thread looks. All other fields are atomic or locked.
unsafe impl Sync for Engine {}

impl Engine {
    const fn new() -> Self {
        Self {
            phase: AtomicPhase::new(),
            session: AtomicU32::new(sampling::NO_SESSION),
            sessions: AtomicU32::new(0),
            mean: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            below: AtomicUsize::new(0),
            cumulative: AtomicBool::new(false),
            marking: AtomicBool::new(false),
            watches_frees: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            dropped_dead: AtomicU64::new(0),
            unmarked: AtomicU64::new(0),
            counts: Counts::new(),
            dead: DeadBlocks::new(),
            marks: Marks::new(),
            runs: Runs::new(),
            dumping: Lock::new(),
            setup: UnsafeCell::new(Setup { options: Options::new(), variable: None }),
        }
    }

    /// The live blocks.
    #[inline(always)]
    pub(crate) fn table(&self) -> &'static Table {
        &TABLE
    }

    /// All stacks.
    #[inline(always)]
    pub(crate) fn tree(&self) -> &'static TraceTree {
        &TREE
    }

    /// What changed since the peak of the heap.
    #[inline(always)]
    pub(crate) fn peak(&self) -> &'static Peak {
        &PEAK
    }

    pub(crate) fn setup(&self) -> Setup {
        // SAFETY: nobody writes `setup` meanwhile: see the `Sync` of `Engine`.
        unsafe { *self.setup.get() }
    }

    /// [`Inside::enter`] for callers that take a lock: also `None` if the stack has no room for that.
    #[inline(always)]
    fn enter_with_room() -> Option<Inside> {
        if slot::has_room() { Inside::enter() } else { None }
    }
}
