//! Lets requests and signals collect and minimize one at a time.

use core::fmt;
use core::time::Duration;

use memory_report::ReportSet;

use crate::collect::pressure::minimize_memory_usage;
use crate::collect::{CollectOptions, collect_reports};
use crate::process_lock::{ChangeSignal, ProcessLock};
use crate::reporting::isolation;

/// The deadline of each reporter, unless a request sets another deadline.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// The time for other threads to run their own reporters, in total. The program `about-memory` sets a deadline of
/// three quarters of the time that it waits, so that a reporter and a thread may both miss their deadlines.
pub(super) fn time_for_threads(deadline: Duration) -> Duration {
    deadline / 4
}

/// Collects, one collection at a time: a reporter then never runs twice at the same time, and collections do not slow
/// each other down. The collection includes the reporters of other threads. The crate `memory-endpoint` also calls this
/// function.
pub fn collect_alone(options: &CollectOptions) -> ReportSet {
    let wait = time_for_threads(options.deadline.unwrap_or(DEADLINE));
    let options = options.clone().ask_threads(wait);
    alone(|| collect_reports(&options))
}

/// A permission that at most one caller in a process has at a time. No lock is held while a caller has the permission,
/// so the caller may run code of the program. The child process of a fork has its own turn.
pub(super) struct CallerTurn {
    /// The process of the caller that has the turn; 0 if the turn is free.
    taken_by: ProcessLock<u32>,
    ended: ChangeSignal,
}

/// Ends a turn when dropped.
pub(super) struct TakenTurn<'a>(&'a CallerTurn);

impl CallerTurn {
    pub(super) const fn new() -> Self {
        Self { taken_by: ProcessLock::new(0), ended: ChangeSignal::new() }
    }

    /// Waits until no other caller has the turn, and takes it.
    fn take(&self) -> TakenTurn<'_> {
        loop {
            let seen = self.ended.count();
            if let Some(taken) = self.try_take() {
                return taken;
            }
            drop(self.ended.wait(self.taken_by.lock(), seen, Duration::MAX));
        }
    }

    /// Takes the turn; `None` if another caller has it.
    pub(super) fn try_take(&self) -> Option<TakenTurn<'_>> {
        let process = std::process::id();
        let mut taken_by = self.taken_by.lock();
        if *taken_by == process {
            return None;
        }
        *taken_by = process;
        Some(TakenTurn(self))
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        *self.0.taken_by.lock() = 0;
        self.0.ended.notify();
    }
}

/// Calls `run`, which runs reporters, while no other caller runs reporters. A call from inside a reporter does not
/// wait, since it would wait for itself; the collection is then refused.
pub(super) fn alone<T>(run: impl FnOnce() -> T) -> T {
    static COLLECTING: CallerTurn = CallerTurn::new();
    let _alone = if isolation::is_reporting() { None } else { Some(COLLECTING.take()) };
    run()
}

/// The error if an earlier request is still minimizing memory usage.
pub(super) struct StillMinimizing;

impl fmt::Display for StillMinimizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory usage is still being minimized; try again later")
    }
}

/// Minimizes memory usage, unless another caller is doing so. The program's hooks may never return, and one thread
/// that waits for them is enough.
pub(super) fn minimize_alone() -> Result<(), StillMinimizing> {
    static MINIMIZING: CallerTurn = CallerTurn::new();
    let _alone = MINIMIZING.try_take().ok_or(StillMinimizing)?;
    minimize_memory_usage();
    Ok(())
}
