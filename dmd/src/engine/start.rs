//! The start of the engine with its options, its restart for tests, and its repair after a fork.

use core::sync::atomic::Ordering;

use super::phase::Phase;
use super::{ENGINE, Engine};
use crate::byte_sampler::ByteSampler;
use crate::options::{Mode, Options, Stacks};
use crate::sampler::Sampler;
use crate::system::errno::keeping_errno;
use crate::system::fork::{self, ForkHandlers};
use crate::system::lock::Lock;
use crate::system::slot::{self, Inside};
use crate::system::{clock, internal_alloc, log};
#[cfg(target_os = "linux")]
use crate::system::{engine_threads, late_start};
use crate::tables::logs::LOGS;
#[cfg(target_os = "linux")]
use crate::tables::mappings;
use crate::tables::observers::ObserverPlace;
use crate::tables::pending::PendingEvents;
use crate::tables::{observers, seen_modules, stack, thread};

static FORKING: ForkHandlers = ForkHandlers {
    for_each_lock: |each| ENGINE.for_each_lock(each),
    in_child: || ENGINE.after_fork_in_child(),
};

/// The options that the engine started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineSetup {
    pub(crate) options: Options,
    /// The value of `$DMD`, if the options come from there; otherwise `None`.
    pub(crate) variable: Option<&'static [u8]>,
}

impl Engine {
    /// Starts to record, or to wait for a request. Only the first call has an effect, and it returns true.
    pub(crate) fn start(&self, setup: EngineSetup) -> bool {
        if !self.phase.change(Phase::Undecided, Phase::Starting) {
            return false;
        }
        let _inside = Inside::deeper();
        keeping_errno(|| {
            self.set(setup);
            clock::start();
            thread::start(|pending| ENGINE.peak().add_pending(ENGINE.tree(), pending), setup.options.seed);
            self.peak().start();
            self.start_copies(setup.options);
            observers::register(ObserverPlace::Logs, &LOGS);
            internal_alloc::reserve();
            fork::start(&FORKING);
            log::start(setup.variable);
            self.begin(setup.options);
        });
        true
    }

    fn set(&self, mut setup: EngineSetup) {
        // A dump contains the options that are in effect, so they are changed before they are stored.
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
        // SAFETY: no other thread reads or writes `setup` at the same time: see the comment at `impl Sync for Engine`.
        unsafe { *self.setup.get() = setup };
    }

    /// For tests: forgets all blocks, and continues with other options and a fresh sampler. No other thread may
    /// allocate during the call.
    pub(crate) fn reset(&self, setup: EngineSetup) {
        let _inside = Inside::deeper();
        self.set(setup);
        self.table().clear();
        #[cfg(target_os = "linux")]
        mappings::MAPPINGS.hold().clear();
        self.dead.clear();
        self.marks.clear();
        self.counts.clear();
        thread::for_each_pending(PendingEvents::clear);
        self.peak().clear(self.tree());
        for count in [&self.dropped, &self.dropped_dead, &self.unseen_frees, &self.unmarked, slot::jumps()] {
            count.store(0, Ordering::Relaxed);
        }
        thread::with_state(|state| {
            state.sampler = Sampler::new();
            state.byte_sampler = ByteSampler::for_thread(thread::seed(), 0);
            state.below = 0;
        });
        self.begin(self.setup().options);
    }

    /// Calls `each` for all locks, in the order in which a thread may take several of them.
    fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        self.table().for_each_lock(each);
        self.marks.for_each_lock(each);
        self.dead.for_each_lock(each);
        thread::for_each_lock(each);
        observers::for_each_lock(each);
        self.tree().for_each_lock(each);
        seen_modules::for_each_lock(each);
        #[cfg(target_os = "linux")]
        mappings::for_each_lock(each);
        internal_alloc::for_each_lock(each);
    }

    /// Repairs the state in the child of a fork, which has no other threads.
    fn after_fork_in_child(&self) {
        #[cfg(target_os = "linux")]
        engine_threads::after_fork_in_child();
        #[cfg(target_os = "linux")]
        late_start::after_fork_in_child();
        // Other threads of the parent may have been writing a dump, or collecting reports.
        self.dumping.free_in_child();
        self.runs.after_fork_in_child();
        stack::after_fork_in_child();
        thread::forget_other_threads();
    }
}
