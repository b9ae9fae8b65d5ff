//! Collections and minimizations for requests and signals: one at a time.

use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError, TryLockError};

use memory_report::ReportSet;

use crate::collect::{CollectOptions, collect_reports, minimize_memory_usage};

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

/// Runs `run`, which runs reporters, while no other caller runs any.
pub(super) fn alone<T>(run: impl FnOnce() -> T) -> T {
    static COLLECTING: Mutex<()> = Mutex::new(());
    let _alone = COLLECTING.lock().unwrap_or_else(PoisonError::into_inner);
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
    static MINIMIZING: Mutex<()> = Mutex::new(());
    let _alone = match MINIMIZING.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Err(StillMinimizing),
    };
    minimize_memory_usage();
    Ok(())
}
