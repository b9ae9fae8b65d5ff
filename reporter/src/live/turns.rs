//! Collections and minimizations for requests and signals: one at a time.

use core::fmt;
use core::time::Duration;

use memory_report::ReportSet;

use crate::collect::pressure::minimize_memory_usage;
use crate::collect::{CollectOptions, collect_reports};
use crate::process_lock::{ChangeSignal, ProcessLock};
use crate::reporting::isolation;

/// The deadline of each reporter, unless a request sets another.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// The time of threads that answer for their own reporters, all together. The program `about-memory` sets a deadline of
/// three quarters of the time that it waits, so that a reporter and a thread may both fail to answer.
pub(super) fn time_for_threads(deadline: Duration) -> Duration {
    deadline / 4
}

/// Collects, one collection at a time: reporters need not expect to run twice at the same time, and two collections
/// would slow each other down. It asks the threads with reporters of their own. The crate `memory-endpoint` uses it, too.
pub fn collect_alone(options: &CollectOptions) -> ReportSet {
    let wait = time_for_threads(options.deadline.unwrap_or(DEADLINE));
    let options = options.clone().ask_threads(wait);
    alone(|| collect_reports(&options))
}

/// A right that one caller of a process has at a time. No lock is held while a caller has it, so code of the program may
/// run meanwhile. The child of a fork has a turn of its own.
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

    /// Waits until no other caller has the turn.
    fn take(&self) -> TakenTurn<'_> {
        loop {
            let seen = self.ended.count();
            if let Some(taken) = self.try_take() {
                return taken;
            }
            drop(self.ended.wait(self.taken_by.lock(), seen, Duration::MAX));
        }
    }

    /// Returns `None` if another caller has the turn.
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

/// Runs `run`, which runs reporters, while no other caller runs any. A reporter that asks for it does not wait for
/// itself: a collection refuses to begin there.
pub(super) fn alone<T>(run: impl FnOnce() -> T) -> T {
    static COLLECTING: CallerTurn = CallerTurn::new();
    let _alone = if isolation::is_reporting() { None } else { Some(COLLECTING.take()) };
    run()
}

/// An earlier request is still minimizing memory usage.
pub(super) struct StillMinimizing;

impl fmt::Display for StillMinimizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory usage is still being minimized")
    }
}

/// Minimizes memory usage, unless another caller does: the program's hooks may never end, and one thread that waits
/// for them is enough.
pub(super) fn minimize_alone() -> Result<(), StillMinimizing> {
    static MINIMIZING: CallerTurn = CallerTurn::new();
    let _alone = MINIMIZING.try_take().ok_or(StillMinimizing)?;
    minimize_memory_usage();
    Ok(())
}
