//! What this program hands to an engine of DMD.

use core::cell::Cell;
use core::time::Duration;

use crate::reporting::isolation;

use super::driver::{CollectOptions, collect_reports};

std::thread_local! {
    static ASK_THREADS: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Runs `dump`, in which the engine calls [`run_reporters`] on this thread. The reporters of other threads run, too, and
/// have this time together. Dumps at the end of the process do without them: no thread may answer any more.
#[cfg(feature = "live")]
pub(crate) fn asking_threads<T>(at_most: Duration, dump: impl FnOnce() -> T) -> T {
    ASK_THREADS.set(Some(at_most));
    let dumped = dump();
    ASK_THREADS.set(None);
    dumped
}

/// Runs all reporters of the program that this copy of the crate belongs to, and drops their reports. Each reporter has
/// `milliseconds` of time; 0 sets no deadline.
pub extern "C" fn run_reporters(milliseconds: u64) {
    let mut options = CollectOptions::new();
    if milliseconds != 0 {
        options = options.deadline(Duration::from_millis(milliseconds));
    }
    options.ask_threads = ASK_THREADS.get();
    // The driver catches the panics of reporters one by one; this catches all others.
    let _ = isolation::contain(|| drop(collect_reports(&options)));
}
