//! The one engine of the process: every hook ends here, and every dump starts here.
//!
//! Functions for hooks neither allocate nor panic, take no global lock and keep `errno` (functions that make a
//! system call restore it). Because of the guard [`Inside`], the engine does not record allocations that it causes
//! itself, in the loader for example. A signal handler may interrupt a thread inside, which may hold a lock. So the
//! engine takes no lock for what the handler allocates, frees and reports, and its blocks have no stack.
//!
//! A program that recovers from a stack overflow jumps out of the hook. So hooks check that the stack has room
//! before a step that must not stay half done. The engine counts what is lost.

mod marking;
mod sampling;
mod usable;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use dmd_format::tables::RECORDS_ALL;

use crate::byte_sampler::ByteSampler;
use crate::options::{Mode, Options, Stacks};
use crate::sampler::Sampler;
use crate::system::errno::keeping_errno;
use crate::system::fork::{self, Forking};
#[cfg(target_os = "linux")]
use crate::system::helpers;
use crate::system::lock::Lock;
use crate::system::slot::{self, Inside, slot};
use crate::system::{clock, internal_alloc, log, memory};
use crate::tables::block_table::{Block, Home, Table, Word};
use crate::tables::dead_blocks::DeadBlocks;
use crate::tables::events::{Event, Happened};
use crate::tables::header::Header;
use crate::tables::logs::LOGS;
use crate::tables::mark::{Fault, FaultKind, Marks, PathId, Report, Reports};
use crate::tables::observers::Place;
use crate::tables::peak::Peak;
use crate::tables::pending::{Amount, Pending};
use crate::tables::runs::{Reporter, Runs};
use crate::tables::sample_filter::SampleFilter;
use crate::tables::stack::Caller;
use crate::tables::statistics::{Counts, End, Statistics};
use crate::tables::trace_id::TraceId;
use crate::tables::trace_tree::TraceTree;
use crate::tables::{observers, seen_modules, stack, thread};
pub(crate) use marking::{MarkOptions, MarkOutcome, OfAllocator};
pub(crate) use usable::{SizeOf, Usable};

pub(crate) static ENGINE: Engine = Engine::new();

// The engine's large tables. They are zero at first, so that they take addresses, but no bytes of the file.
static TABLE: Table = Table::new();
static TREE: TraceTree = TraceTree::new();
#[used]
static HEADER: Header = Header::new(&HEADER, &TABLE, &TREE, &ENGINE.phase, &ENGINE.below);
static PEAK: Peak = Peak::new();
static SAMPLED: SampleFilter = SampleFilter::new();

static FORKING: Forking =
    Forking { for_each_lock: |each| ENGINE.for_each_lock(each), in_child: || ENGINE.after_fork_in_child() };

/// Whether the engine records blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No hook has looked at the options.
    Undecided,
    /// The engine starts: it records nothing yet.
    Starting,
    /// The engine records nothing, for good.
    Off,
    /// The engine records every block, or a sample of the small ones.
    On,
    /// The engine records a sample by bytes.
    Sampling,
    /// The engine records nothing until a request asks for it.
    Waiting,
}

pub(crate) struct Engine {
    phase: AtomicU8,
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

/// The options that the engine started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) options: Options,
    /// The value of `$DMD`, if the options are from there.
    pub(crate) variable: Option<&'static [u8]>,
}

// SAFETY: `start` writes `setup` before the phase says that the engine is on, and tests write it when no other
// thread looks. All other fields are atomic or locked.
unsafe impl Sync for Engine {}

/// A block on its way from one address to another, with its reports. A hook begins the move before the allocator
/// moves the block, and then commits it or rolls it back.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct BlockMove(Option<(usize, Block, Reports)>);

impl core::fmt::Debug for BlockMove {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("BlockMove").field(&self.0.map(|(address, ..)| address)).finish()
    }
}

impl Engine {
    const fn new() -> Self {
        Self {
            phase: AtomicU8::new(0),
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

    #[inline(always)]
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Undecided,
            RECORDS_ALL => Phase::On,
            3 | sampling::STARTING => Phase::Starting,
            sampling::SAMPLING => Phase::Sampling,
            sampling::WAITING => Phase::Waiting,
            _ => Phase::Off,
        }
    }

    /// Decides that the engine records nothing.
    pub(crate) fn switch_off(&self) {
        self.phase.store(1, Ordering::Release);
    }

    /// Starts recording. Only the first call does so, and returns true.
    pub(crate) fn start(&self, setup: Setup) -> bool {
        if self.phase.compare_exchange(0, 3, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let _inside = Inside::deeper();
        keeping_errno(|| {
            self.set(setup);
            clock::start();
            thread::start(|pending| ENGINE.peak().add_pending(ENGINE.tree(), pending), setup.options.seed);
            self.peak().start();
            observers::register(Place::Logs, &LOGS);
            internal_alloc::reserve();
            fork::start(&FORKING);
            log::start(setup.variable);
            self.begin(setup.options);
        });
        true
    }

    fn set(&self, mut setup: Setup) {
        // A dump names the options that are in force.
        setup.options.sample_nothing_in_tests();
        if setup.options.wait_for_track {
            (setup.options.mode, setup.options.sample_bytes) = (Mode::Live, None);
            setup.options.record = None;
        }
        // A recording has every block, with its stack.
        if setup.options.record.is_some() {
            (setup.options.sample_bytes, setup.options.sample_below) = (None, None);
            setup.options.stacks = Stacks::Full;
        }
        if setup.options.sample_bytes.is_some() {
            setup.options.sample_below = None;
        }
        if setup.options.mode == Mode::Scan || setup.options.sample_bytes.is_some() {
            setup.options.stacks = Stacks::Full;
        }
        let options = setup.options;
        let below = options.sample_below.unwrap_or(0);
        self.full.store(options.stacks == Stacks::Full || below > 0, Ordering::Relaxed);
        self.below.store(below, Ordering::Relaxed);
        self.cumulative.store(options.mode == Mode::Cumulative, Ordering::Relaxed);
        self.watches_frees.store(options.mode == Mode::Cumulative, Ordering::Relaxed);
        self.marking.store(options.mode == Mode::DarkMatter, Ordering::Relaxed);
        log::set(options.quiet, options.verbose);
        // SAFETY: nobody else reads or writes `setup` meanwhile: see the `Sync` of `Engine`.
        unsafe { *self.setup.get() = setup };
    }

    pub(crate) fn setup(&self) -> Setup {
        // SAFETY: nobody writes `setup` meanwhile: see the `Sync` of `Engine`.
        unsafe { *self.setup.get() }
    }

    /// For tests: forgets all blocks, and continues with other options and a fresh sampler. No other thread may
    /// allocate meanwhile.
    pub(crate) fn reset(&self, setup: Setup) {
        let _inside = Inside::deeper();
        self.set(setup);
        self.table().clear();
        self.dead.clear();
        self.marks.clear();
        self.counts.clear();
        thread::for_each_pending(Pending::clear);
        self.peak().clear(self.tree());
        for count in [&self.dropped, &self.dropped_dead, &self.unmarked, slot::jumps()] {
            count.store(0, Ordering::Relaxed);
        }
        thread::with_state(|state| {
            state.sampler = Sampler::new();
            state.byte_sampler = ByteSampler::of_thread(thread::seed(), 0);
            state.below = 0;
        });
        self.begin(self.setup().options);
    }

    /// Calls `each` for all locks, in the order in which a thread may take them together.
    fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        self.table().for_each_lock(each);
        self.marks.for_each_lock(each);
        self.dead.for_each_lock(each);
        thread::for_each_lock(each);
        observers::for_each_lock(each);
        self.tree().for_each_lock(each);
        seen_modules::for_each_lock(each);
        internal_alloc::for_each_lock(each);
    }

    /// Repairs the state in the child of a fork, which has no other threads.
    fn after_fork_in_child(&self) {
        #[cfg(target_os = "linux")]
        helpers::after_fork_in_child();
        // A thread of the parent may have been writing a dump, another collecting reports.
        self.dumping.free_in_child();
        self.runs.after_fork_in_child();
        stack::after_fork_in_child();
        thread::forget_other_threads();
    }

    /// Blocks that the engine did not record: memory or room on the stack was short, or a jump left the hook.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed) + slot::jumps().load(Ordering::Relaxed)
    }

    /// Freed blocks that the engine did not count: memory or room on the stack was short, or a signal handler freed
    /// them.
    pub(crate) fn dropped_dead(&self) -> u64 {
        self.dropped_dead.load(Ordering::Relaxed)
    }

    /// Reports that the engine did not keep: memory or room on the stack was short.
    pub(crate) fn dropped_reports(&self) -> u64 {
        self.unmarked.load(Ordering::Relaxed)
    }

    /// Records a block. `caller` is the hook: frames further in belong to DMD.
    #[inline(always)]
    pub(crate) fn record(&self, address: usize, requested: usize, usable: Usable, caller: Caller) {
        if !self.records_all() {
            return self.record_sample(address, requested, usable.of(address), caller);
        }
        if !slot::has_room() {
            return self.drop_block();
        }
        let Some(_inside) = Inside::enter() else {
            return self.record_for_handler(address, requested, usable.of(address));
        };
        let all = self.full.load(Ordering::Relaxed) && self.below.load(Ordering::Relaxed) == 0;
        let Some(lease) = thread::lease().filter(|_| all) else {
            return self.record_chosen(address, requested, usable.of(address), caller);
        };
        let home = self.fetch_home(address);
        let trace = lease.with_state(|state| state.stack.trace(caller, self.tree()));
        // The head of the block, which says how long the block is, may be in no cache either: the walk does not wait for
        // it.
        let slop = usable.of(address).saturating_sub(requested);
        self.record_at(address, home, Block { requested, slop, trace, sampled: false, marked: false });
    }

    /// [`record`](Self::record) for any options, and for a thread's first block. The thread is inside.
    #[inline(never)]
    fn record_chosen(&self, address: usize, requested: usize, usable: usize, caller: Caller) {
        let home = self.fetch_home(address);
        let below = self.below.load(Ordering::Relaxed);
        let taken = thread::with_state(|state| {
            let sampled = usable < below;
            if sampled {
                state.below += usable;
                if state.below < below {
                    return None;
                }
                state.below -= below;
            }
            let wanted = self.full.load(Ordering::Relaxed) || state.sampler.trial(usable);
            let trace = if wanted { state.stack.trace(caller, self.tree()) } else { TraceId::NONE };
            Some((sampled, trace))
        });
        let (sampled, trace) = match taken {
            Some(Some(taken)) => taken,
            Some(None) => return,
            None => (false, TraceId::NONE),
        };
        let slop = usable.saturating_sub(requested);
        self.record_at(address, home, Block { requested, slop, trace, sampled, marked: false });
    }

    /// Where a block is to be recorded. The line is rarely in a cache, since the table is large: it comes while the engine
    /// walks the stack.
    #[inline(always)]
    fn fetch_home(&self, address: usize) -> Option<Home<'_>> {
        let home = self.table().home(address)?;
        memory::prefetch(home.line);
        Some(home)
    }

    /// Records a block of a thread that is inside.
    #[inline(always)]
    fn record_at(&self, address: usize, home: Option<Home<'_>>, block: Block) {
        if let Some(home) = home
            && let Some(word) = Word::of(block)
            && let Some(lease) = thread::lease()
            && home.insert_word(address, word)
        {
            if lease.pending.begin(address, word) {
                lease.settle(self.peak().allowance());
            }
            return;
        }
        self.record_inside(address, block);
    }

    /// [`record_at`](Self::record_at) for any block.
    #[inline(never)]
    fn record_inside(&self, address: usize, block: Block) {
        if !self.insert(address, block) {
            return;
        }
        let begun = thread::with_lease(|lease| {
            let amount = self.amount(block);
            let event = || Event::now(address, Happened::Began, self.counted(block));
            lease.settle_after(self.peak().allowance(), event, |pending| {
                pending.begin_other(address, block.trace, amount);
            });
        });
        if begun.is_none() {
            self.begin_alone(address, block);
        }
    }

    /// Records a block of a signal handler that interrupted this thread in the engine. The thread's state is in
    /// use, and the thread may hold a lock.
    #[cold]
    #[inline(never)]
    fn record_for_handler(&self, address: usize, requested: usize, usable: usize) {
        if slot().guard.is_for_the_engine() {
            return;
        }
        if self.take_lost(address).is_some() && self.cumulative.load(Ordering::Relaxed) {
            self.drop_dead_block();
        }
        // A small block stands for itself alone: the sum of small blocks is in the thread's state.
        let slop = usable.saturating_sub(requested);
        let block = Block { requested, slop, trace: TraceId::NONE, sampled: false, marked: false };
        if self.table().insert(address, block) {
            self.begin_alone(address, block);
        } else {
            self.drop_block();
        }
    }

    #[cold]
    fn drop_block(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    fn drop_dead_block(&self) {
        self.dropped_dead.fetch_add(1, Ordering::Relaxed);
    }

    /// A block as dumps count it: a sample of small blocks has the bytes of all blocks that it stands for. A sample by
    /// bytes has its own, which readers weigh.
    #[inline(always)]
    pub(crate) fn counted(&self, block: Block) -> Block {
        match block.sampled {
            true => self.counted_sample(block),
            false => block,
        }
    }

    /// Records a block, without a stack, that the program allocated before the engine had its options.
    pub(crate) fn record_early(&self, address: usize, requested: usize, usable: usize) {
        let slop = usable.saturating_sub(requested);
        let block = Block { requested, slop, trace: TraceId::NONE, sampled: false, marked: false };
        if self.insert(address, block) {
            self.begin_alone(address, block);
        }
    }

    /// False if there is no memory for the block.
    #[inline(always)]
    fn insert(&self, address: usize, block: Block) -> bool {
        if let Some(lost) = self.take_lost(address) {
            self.bury(lost);
        }
        let inserted = self.insert_any(address, block);
        if !inserted {
            self.drop_block();
        }
        inserted
    }

    /// The block that was recorded where a new one begins: the program freed it where no hook saw it.
    #[inline(always)]
    fn take_lost(&self, address: usize) -> Option<Block> {
        if self.table().is_live(address) { self.take_live(address) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn take_live(&self, address: usize) -> Option<Block> {
        let lost = self.table().remove(address)?;
        // Observers see it by the begin of the next block, which takes its place.
        self.uncount_sample(address, lost);
        self.end_alone(lost, End::Freed);
        Some(lost)
    }

    /// Counts a new block without the state of a thread.
    #[cold]
    fn begin_alone(&self, address: usize, block: Block) {
        observers::observe_alone(address, Happened::Began, self.counted(block));
        self.counts.begin();
        self.count_alone(block, self.amount(block));
    }

    /// Forgets the block that starts here, and counts its end. `None`, and nothing changes, if that is not simple.
    #[inline(always)]
    fn remove_simple(&self, address: usize, end: End) -> Option<Word> {
        let _inside = Self::enter_with_room()?;
        let lease = thread::lease()?;
        let word = self.table().remove_word(address)?;
        if lease.pending.end(address, word, end) {
            lease.settle(self.peak().allowance());
        }
        Some(word)
    }

    /// [`remove_simple`](Self::remove_simple) for any block, which it returns.
    #[inline(never)]
    fn remove_other(&self, address: usize, end: End) -> Option<Block> {
        let block = self.table().remove(address)?;
        self.forget_sample(address, block);
        let ended = Self::enter_with_room().and_then(|_inside| {
            thread::with_lease(|lease| {
                let amount = self.amount(block);
                let event = || Event::now(address, Happened::Ended(end), self.counted(block));
                lease.settle_after(self.peak().allowance(), event, |pending| {
                    pending.end_other(address, block.trace, amount, end);
                });
            })
        });
        if ended.is_none() {
            observers::observe_alone(address, Happened::Ended(end), self.counted(block));
            self.end_alone(block, end);
        }
        Some(block)
    }

    /// Counts the end of a block without the state of a thread.
    #[cold]
    fn end_alone(&self, block: Block, end: End) {
        self.counts.end(end);
        self.count_alone(block, self.amount(block).negative());
    }

    fn count_alone(&self, block: Block, amount: Amount) {
        self.peak().add(self.tree(), block.trace, amount);
    }

    /// Allocations, frees and the like of all threads.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        statistics.add(&self.counts);
        thread::for_each_pending(|pending| pending.add_to(&mut statistics));
        statistics
    }

    fn bury(&self, block: Block) {
        if self.cumulative.load(Ordering::Relaxed) && !self.dead.count(self.counted(block)) {
            self.drop_dead_block();
        }
    }

    /// [`Inside::enter`] for callers that take a lock: also `None` if the stack has no room for that.
    #[inline(always)]
    fn enter_with_room() -> Option<Inside> {
        if slot::has_room() { Inside::enter() } else { None }
    }

    /// Forgets the block that starts here. Callers do so before they free it: otherwise another thread could get
    /// the address in between.
    #[inline(always)]
    pub(crate) fn forget(&self, address: usize) {
        if self.has_no_record(address) {
            return;
        }
        // Most allocators look in front of the block next. Both waits for memory overlap.
        memory::prefetch(core::ptr::without_provenance::<u8>(address.wrapping_sub(8)));
        if self.watches_frees.load(Ordering::Relaxed) {
            self.forget_watched(address);
        } else if self.remove_simple(address, End::Freed).is_none() {
            self.remove_other(address, End::Freed);
        }
    }

    #[cold]
    fn forget_watched(&self, address: usize) {
        self.commit_move(self.take(address, End::Freed));
    }

    /// Forgets the block that starts here, before the allocator moves it.
    #[inline]
    pub(crate) fn begin_move(&self, address: usize) -> BlockMove {
        if self.has_no_record(address) { BlockMove(None) } else { self.take(address, End::Moved) }
    }

    #[inline(never)]
    fn take(&self, address: usize, end: End) -> BlockMove {
        let removed = self.remove_simple(address, end).map(Word::block);
        BlockMove(removed.or_else(|| self.remove_other(address, end)).map(|block| {
            let reports = if block.marked { self.remove_marks(address) } else { Reports::default() };
            (address, block, reports)
        }))
    }

    #[cold]
    fn remove_marks(&self, address: usize) -> Reports {
        // Marks that stay belong to no block, since the bit in the table is gone.
        Self::enter_with_room().map_or_else(Reports::default, |_inside| self.marks.remove(address))
    }

    /// The allocator moved the block: nothing is left at its old address.
    #[inline]
    pub(crate) fn commit_move(&self, begun: BlockMove) {
        let Some((address, block, reports)) = begun.0 else { return };
        if !self.watches_frees.load(Ordering::Relaxed) {
            return;
        }
        let Some(_inside) = Self::enter_with_room() else {
            if self.cumulative.load(Ordering::Relaxed) {
                self.drop_dead_block();
            }
            return;
        };
        self.bury(block);
        // A mark made at allocation ends with the block. A reporter that made a mark later still refers to the
        // freed block.
        for report in reports.iter().flatten().filter(|report| !report.on_alloc) {
            let Report { path, trace, .. } = *report;
            self.marks.fault(Fault { kind: FaultKind::FreedSince, address, path, trace });
        }
    }

    /// The allocator left the block where it was.
    pub(crate) fn roll_back_move(&self, begun: BlockMove) {
        let Some((address, block, reports)) = begun.0 else { return };
        if self.insert_again(address, block) {
            self.counts.roll_back();
            self.count_alone(block, self.amount(block));
            self.observe_back(address, block);
        } else {
            self.drop_block();
        }
        if reports[0].is_none() {
            return;
        }
        let Some(_inside) = Self::enter_with_room() else {
            self.unmarked.fetch_add(1, Ordering::Relaxed);
            return;
        };
        for report in reports.into_iter().flatten() {
            self.mark(address, report, || true);
        }
    }

    #[cold]
    fn observe_back(&self, address: usize, block: Block) {
        let observed = Self::enter_with_room().and_then(|_inside| {
            let event = || Event::now(address, Happened::CameBack, self.counted(block));
            thread::with_lease(|lease| lease.observe(event))
        });
        if observed.is_none() {
            observers::observe_alone(address, Happened::CameBack, self.counted(block));
        }
    }

    /// Removes a reporter's marks for a path, or for all paths if it is `NONE`. Reporter 0 has no marks.
    pub(crate) fn withdraw(&self, reporter: Reporter, path: PathId) {
        if reporter == 0 {
            return;
        }
        let usable = |address| self.table().get(address).map_or(0, |block| self.usable_of(block));
        self.marks.withdraw(reporter, path, usable, |address| self.table().unmark(address));
    }

    /// Removes all reports except those made at allocation, even if a run owns them.
    pub(crate) fn clear_reports(&self) {
        if fork::would_wait_for_itself() {
            return;
        }
        self.runs.seize(0);
        self.clear_marks();
    }

    /// [`clear_reports`](Self::clear_reports) for a run that owns them. If no report is left, forgets all paths
    /// too. The caller holds `dumping`, since a dump names paths.
    pub(crate) fn begin_reports(&self) {
        let _inside = Inside::anyway();
        if self.clear_marks() == 0 {
            self.marks.forget_paths();
        }
    }

    /// Returns how many blocks still have reports: those made at allocation.
    fn clear_marks(&self) -> usize {
        let _inside = Inside::anyway();
        let left = self.marks.clear_reports(|address| self.table().unmark(address));
        let cumulative = self.cumulative.load(Ordering::Relaxed);
        self.watches_frees.store(cumulative || left > 0, Ordering::Relaxed);
        left
    }
}
