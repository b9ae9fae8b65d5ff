//! Runs of reporters, which may overlap: only one marks blocks, so that no block is found to be reported
//! twice because two runs have reported it once each.
//!
//! A collection owns the marks if nobody else does; a dump takes them from whoever does. What a run that
//! does not own them reports leaves no mark, and a collection that has lost them tells so. Nobody waits.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::system::slot::slot;

/// The number of a run; none is 0.
pub(crate) type Run = u32;

pub(crate) struct Runs {
    /// 0 if no run owns the marks.
    owner: AtomicU32,
    last: AtomicU32,
    /// Whose reporters a dump runs, before it is written; 0 if no dump does.
    of_dump: AtomicU32,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self { owner: AtomicU32::new(0), last: AtomicU32::new(0), of_dump: AtomicU32::new(0) }
    }

    /// A number for another run.
    pub(crate) fn next(&self) -> Run {
        loop {
            let run = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if run != 0 {
                return run;
            }
        }
    }

    /// Gives the marks to the run, unless another has them.
    pub(crate) fn claim(&self, run: Run) -> bool {
        self.owner.compare_exchange(0, run, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Gives the marks to the run, whoever has them; to none, if that is 0.
    pub(crate) fn seize(&self, run: Run) {
        self.owner.store(run, Ordering::SeqCst);
    }

    /// The run needs the marks no more.
    pub(crate) fn give_up(&self, run: Run) {
        // If it fails, the run has lost them already.
        let _ = self.owner.compare_exchange(run, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(crate) fn is_owner(&self, run: Run) -> bool {
        self.owner.load(Ordering::SeqCst) == run
    }

    /// A dump gives the marks to the run, whoever has them, and is about to run its reporters.
    pub(crate) fn begin_dump(&self, run: Run) {
        self.seize(run);
        self.of_dump.store(run, Ordering::SeqCst);
    }

    /// The reporters have run. False if the dump is another thread's now.
    pub(crate) fn end_reporters(&self, run: Run) -> bool {
        self.take_over(run)
    }

    /// Makes the dump that runs these reporters the caller's: one of them ends the process, and whoever began the
    /// dump would wait for it. False if there is no such dump.
    pub(crate) fn take_over(&self, run: Run) -> bool {
        self.of_dump.compare_exchange(run, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// In the child of a fork: whoever ran reporters is not here, or goes on in the parent.
    pub(crate) fn after_fork_in_child(&self) {
        self.of_dump.store(0, Ordering::SeqCst);
        self.seize(0);
    }

    /// Whether what this thread reports is of the run that owns the marks.
    pub(crate) fn owns_marks(&self) -> bool {
        let run = slot().run.get();
        run != 0 && self.is_owner(run)
    }

    /// Whether what this thread reports leaves marks. What is reported outside of any run always does.
    pub(crate) fn may_mark(&self) -> bool {
        let run = slot().run.get();
        let owner = self.owner.load(Ordering::SeqCst);
        run == 0 || owner == 0 || owner == run
    }
}

/// Makes what this thread reports the run's, until dropped.
pub(crate) struct Entered(Run);

impl Entered {
    pub(crate) fn new(run: Run) -> Self {
        Self(slot().run.replace(run))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        slot().run.set(self.0);
    }
}

/// The number of a reporter of a run, for the marks that it makes: none is 0. Numbers come again after some
/// 65,000, which no run has.
pub(crate) type Reporter = u16;

/// For programs: a number for another reporter.
pub(crate) extern "C" fn new_reporter() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) % u32::from(Reporter::MAX) + 1
}

/// For programs: makes what this thread marks the reporter's, and gives the one that it was of before.
pub(crate) extern "C" fn enter_reporter(reporter: u32) -> u32 {
    slot().reporter.replace(reporter)
}

/// For programs: makes what this thread reports the run's, and gives the one that it was of before.
pub(crate) extern "C" fn enter(run: Run) -> Run {
    slot().run.replace(run)
}
