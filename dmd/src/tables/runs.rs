//! Runs of reporters, which may overlap. Only one run may mark blocks: otherwise, if two runs each reported a block
//! once, the block would count as reported twice.
//!
//! A collection owns the marks if no other run owns them; a dump takes them from any run. While a run owns the marks,
//! reports of other runs make no marks. A collection that has lost the marks warns. No run waits for another run.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::system::slot::slot;

/// The number of a run, which is never 0.
pub(crate) type RunNumber = u32;

pub(crate) struct Runs {
    /// The run that owns the marks; 0 if no run owns them.
    owner: AtomicU32,
    last: AtomicU32,
    /// The run of a dump that runs reporters before it is written; 0 if there is no such dump.
    of_dump: AtomicU32,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self { owner: AtomicU32::new(0), last: AtomicU32::new(0), of_dump: AtomicU32::new(0) }
    }

    /// Returns the number for a new run.
    pub(crate) fn next(&self) -> RunNumber {
        loop {
            let run = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if run != 0 {
                return run;
            }
        }
    }

    /// Gives the marks to the run, unless another run owns them. Returns whether the run got them.
    pub(crate) fn claim(&self, run: RunNumber) -> bool {
        self.owner.compare_exchange(0, run, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Gives the marks to the run, even if another run owns them; 0 takes them from every run.
    pub(crate) fn seize(&self, run: RunNumber) {
        self.owner.store(run, Ordering::SeqCst);
    }

    /// Ends the run's ownership of the marks.
    pub(crate) fn give_up(&self, run: RunNumber) {
        // If this fails, another run has already taken the marks.
        let _ = self.owner.compare_exchange(run, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(crate) fn is_owner(&self, run: RunNumber) -> bool {
        self.owner.load(Ordering::SeqCst) == run
    }

    /// Gives the marks to the run of a dump, which is about to run its reporters, even if another run owns them.
    pub(crate) fn begin_dump(&self, run: RunNumber) {
        self.seize(run);
        self.of_dump.store(run, Ordering::SeqCst);
    }

    /// Records that all reporters of a dump have run. Returns false if another thread has taken the dump over.
    pub(crate) fn end_reporters(&self, run: RunNumber) -> bool {
        self.take_over(run)
    }

    /// Transfers the dump that runs these reporters to the calling thread: one of the reporters ends the process, and
    /// the thread that started the dump would wait for it. Returns false if there is no such dump.
    pub(crate) fn take_over(&self, run: RunNumber) -> bool {
        self.of_dump.compare_exchange(run, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Forgets the runs. The child of a fork calls this: the threads of the runs continue in the parent, not in the
    /// child.
    pub(crate) fn after_fork_in_child(&self) {
        self.of_dump.store(0, Ordering::SeqCst);
        self.seize(0);
    }

    /// Whether this thread reports for the run that owns the marks.
    pub(crate) fn owns_marks(&self) -> bool {
        let run = slot().run.get();
        run != 0 && self.is_owner(run)
    }

    /// Whether reports of this thread make marks. Reports outside of any run always make marks.
    pub(crate) fn may_mark(&self) -> bool {
        let run = slot().run.get();
        let owner = self.owner.load(Ordering::SeqCst);
        run == 0 || owner == 0 || owner == run
    }
}

/// Makes this thread report for a run, until dropped.
pub(crate) struct EnteredRun(RunNumber);

impl EnteredRun {
    pub(crate) fn new(run: RunNumber) -> Self {
        Self(slot().run.replace(run))
    }
}

impl Drop for EnteredRun {
    fn drop(&mut self) {
        slot().run.set(self.0);
    }
}

/// The number of a reporter of a run, for its marks; 0 for marks that no reporter made. Numbers repeat after about
/// 65,000. No run has that many reporters.
pub(crate) type ReporterNumber = u16;

/// For programs: returns the number for a new reporter.
pub(crate) extern "C" fn new_reporter() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) % u32::from(ReporterNumber::MAX) + 1
}

/// For programs: sets the reporter for which this thread marks, and returns the previous reporter.
pub(crate) extern "C" fn enter_reporter(reporter: u32) -> u32 {
    slot().reporter.replace(reporter)
}

/// For programs: sets the run for which this thread reports, and returns the previous run.
pub(crate) extern "C" fn enter(run: RunNumber) -> RunNumber {
    slot().run.replace(run)
}
