//! Runs of reporters, which may overlap: only one marks blocks, so that no block is found to be reported
//! twice because two runs have reported it once each.
//!
//! A collection owns the marks if nobody else does; a dump takes them from whoever does. What a run that
//! does not own them reports leaves no mark, and a collection that has lost them tells so. Nobody waits.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::thread;

/// The number of a run; none is 0.
pub(crate) type Run = u32;

pub(crate) struct Runs {
    /// 0 if no run owns the marks.
    owner: AtomicU32,
    last: AtomicU32,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self { owner: AtomicU32::new(0), last: AtomicU32::new(0) }
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

    #[cfg(feature = "analyze")]
    pub(crate) fn is_owner(&self, run: Run) -> bool {
        self.owner.load(Ordering::SeqCst) == run
    }

    /// Whether what this thread reports leaves marks. What is reported outside of any run always does.
    pub(crate) fn may_mark(&self) -> bool {
        let run = thread::slot().run.get();
        let owner = self.owner.load(Ordering::SeqCst);
        run == 0 || owner == 0 || owner == run
    }
}

/// Makes what this thread reports the run's, until dropped.
pub(crate) struct Entered(Run);

impl Entered {
    pub(crate) fn new(run: Run) -> Self {
        Self(thread::slot().run.replace(run))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        thread::slot().run.set(self.0);
    }
}

/// For programs: makes what this thread reports the run's, and gives the one that it was of before.
pub(crate) extern "C" fn enter(run: Run) -> Run {
    thread::slot().run.replace(run)
}
