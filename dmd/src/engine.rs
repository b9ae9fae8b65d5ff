//! The engine, one for each process. Hooks call it to record blocks, and dumps read its tables.
//!
//! Functions for hooks neither allocate nor panic. They take no global lock and keep `errno` (functions that make a
//! system call restore it). Because of the guard [`Inside`], the engine does not record allocations that it causes
//! itself, for example in the loader. A signal handler may interrupt a thread inside the engine while the thread holds
//! a lock. So the engine takes no lock when the handler allocates, frees or reports. Blocks of the handler have no
//! stack.
//!
//! If the stack overflows in a hook, a program that recovers from the overflow jumps out of the hook. So, before a step
//! that must not be interrupted, hooks check that the stack has room. Without room, the engine only counts the block.

mod block_ends;
mod block_starts;
mod copies;
mod counts;
#[cfg(engine = "native")]
mod mappings;
mod marking;
mod phase;
mod sampling;
mod start;
mod usable;
mod waiting;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::options::Options;
use crate::system::lock::Lock;
use crate::system::slot::{self, Inside};
use crate::tables::block_table::BlockTable;
use crate::tables::dead_blocks::DeadBlocks;
use crate::tables::header::TablesHeader;
use crate::tables::mark::Marks;
use crate::tables::peak::Peak;
use crate::tables::runs::Runs;
use crate::tables::sample_filter::SampleFilter;
use crate::tables::statistics::EventCounts;
use crate::tables::trace_tree::TraceTree;
pub use block_ends::BlockMove;
pub(crate) use copies::add_stacks;
pub(crate) use marking::{MarkOptions, MarkOutcome, OfAllocator};
use phase::AtomicPhase;
pub(crate) use phase::Phase;
pub(crate) use start::EngineSetup;
pub use usable::SizeOf;
pub(crate) use usable::UsableBytes;

pub(crate) static ENGINE: Engine = Engine::new();

// The engine's large tables. They are zero at first, so they need addresses, but no bytes in the file.
static TABLE: BlockTable = BlockTable::new();
static TREE: TraceTree = TraceTree::new();
#[used]
static HEADER: TablesHeader = TablesHeader::new(&HEADER, &TABLE, &TREE, ENGINE.phase.number(), &ENGINE.below);
static PEAK: Peak = Peak::new();
static SAMPLED: SampleFilter = SampleFilter::new();

pub(crate) struct Engine {
    phase: AtomicPhase,
    /// The number of the session of sampling by bytes; [`NO_SESSION`](sampling::NO_SESSION) while the engine takes
    /// no sample.
    session: AtomicU32,
    /// The number of sessions so far.
    sessions: AtomicU32,
    /// The mean distance in bytes of the samples; 0 if the engine does not sample by bytes.
    mean: AtomicUsize,
    full: AtomicBool,
    /// The engine samples blocks with fewer usable bytes than this; 0 if the engine records every block.
    below: AtomicUsize,
    cumulative: AtomicBool,
    marking: AtomicBool,
    /// Whether the engine looks at freed blocks, because it counts them or because a reporter may have reported them.
    watches_frees: AtomicBool,
    /// Whether this copy of the library is preloaded and so has the hooks.
    preloaded: AtomicBool,
    dropped: AtomicU64,
    dropped_dead: AtomicU64,
    unseen_frees: AtomicU64,
    unmarked: AtomicU64,
    /// The counts of events that were recorded without a thread's state.
    counts: EventCounts,
    pub(crate) dead: DeadBlocks,
    pub(crate) marks: Marks,
    pub(crate) runs: Runs,
    /// Held by the thread that writes a dump.
    pub(crate) dumping: Lock,
    setup: UnsafeCell<EngineSetup>,
}

// SAFETY: `start` writes `setup` before the engine records or waits, and tests write it while no other thread reads it.
// All other fields are atomic or locked.
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
            preloaded: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            dropped_dead: AtomicU64::new(0),
            unseen_frees: AtomicU64::new(0),
            unmarked: AtomicU64::new(0),
            counts: EventCounts::new(),
            dead: DeadBlocks::new(),
            marks: Marks::new(),
            runs: Runs::new(),
            dumping: Lock::new(),
            setup: UnsafeCell::new(EngineSetup { options: Options::new(), variable: None }),
        }
    }

    /// Records that this copy of the library is preloaded and so has the hooks.
    pub(crate) fn set_preloaded(&self) {
        self.preloaded.store(true, Ordering::Relaxed);
    }

    /// Whether this copy of the library is preloaded and so has the hooks.
    pub(crate) fn is_preloaded(&self) -> bool {
        self.preloaded.load(Ordering::Relaxed)
    }

    /// The live blocks.
    #[inline(always)]
    pub(crate) fn table(&self) -> &'static BlockTable {
        &TABLE
    }

    /// All stacks.
    #[inline(always)]
    pub(crate) fn tree(&self) -> &'static TraceTree {
        &TREE
    }

    /// The changes since the peak of the heap.
    #[inline(always)]
    pub(crate) fn peak(&self) -> &'static Peak {
        &PEAK
    }

    pub(crate) fn setup(&self) -> EngineSetup {
        // SAFETY: no thread writes `setup` at the same time: see the comment at `impl Sync for Engine`.
        unsafe { *self.setup.get() }
    }

    /// Like [`Inside::enter`], for callers that take a lock: also returns `None` if the stack has too little room.
    #[inline(always)]
    fn enter_with_room() -> Option<Inside> {
        if slot::has_room() { Inside::enter() } else { None }
    }
}
