//! The function that this program gives to an engine of DMD.

use core::cell::Cell;
use core::time::Duration;

use crate::reporting::isolation;

use super::driver::{CollectOptions, collect_reports};

/// How the reporters of a dump run. Dumps at the end of the process ask no other thread: none may answer any more.
#[derive(Clone, Copy, Default)]
pub(crate) struct ForDump {
    /// The time of all other threads together.
    pub(crate) ask_threads: Option<Duration>,
    /// Reporters leave private data out of paths.
    pub(crate) anonymize: bool,
}

std::thread_local! {
    static FOR_DUMP: Cell<ForDump> = const { Cell::new(ForDump { ask_threads: None, anonymize: false }) };
}

/// Runs `dump`, in which the engine calls [`run_reporters`] on this thread.
#[cfg(feature = "live")]
pub(crate) fn for_dump<T>(how: ForDump, dump: impl FnOnce() -> T) -> T {
    FOR_DUMP.set(how);
    let dumped = dump();
    FOR_DUMP.set(ForDump::default());
    dumped
}

/// Runs all reporters of the program that this copy of the crate belongs to, and drops their reports. Each reporter has
/// `milliseconds` of time; 0 sets no deadline.
pub extern "C" fn run_reporters(milliseconds: u64) {
    let mut options = CollectOptions::new();
    if milliseconds != 0 {
        options = options.deadline(Duration::from_millis(milliseconds));
    }
    let ForDump { ask_threads, anonymize } = FOR_DUMP.get();
    options.ask_threads = ask_threads;
    options = options.anonymize(anonymize);
    // The driver catches the panics of reporters one by one; this catches all others.
    let _ = isolation::contain(|| drop(collect_reports(&options)));
}
