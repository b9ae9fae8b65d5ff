//! The function that an engine of DMD calls to run this program's reporters.

use core::cell::Cell;
use core::time::Duration;

use crate::reporting::isolation;

use super::driver::{CollectOptions, collect_reports};

/// The options of the collection for a dump. A dump at the end of the process leaves out the reporters of other
/// threads, because these threads might no longer answer.
#[derive(Clone, Copy, Default)]
pub(crate) struct ForDump {
    /// The longest wait for all other threads together; `None` leaves out other threads.
    pub(crate) ask_threads: Option<Duration>,
    /// Whether reporters leave private data out of paths.
    pub(crate) anonymize: bool,
}

std::thread_local! {
    static FOR_DUMP: Cell<ForDump> = const { Cell::new(ForDump { ask_threads: None, anonymize: false }) };
}

/// Runs `dump`. During this call, the engine calls [`run_reporters`] on this thread, which then uses the options `how`.
#[cfg(feature = "live")]
pub(crate) fn for_dump<T>(how: ForDump, dump: impl FnOnce() -> T) -> T {
    FOR_DUMP.set(how);
    let dumped = dump();
    FOR_DUMP.set(ForDump::default());
    dumped
}

/// Runs all reporters of the program that contains this copy of the crate, and drops their reports. Each reporter has
/// at most `milliseconds`; 0 means no deadline.
pub extern "C" fn run_reporters(milliseconds: u64) {
    let mut options = CollectOptions::new();
    if milliseconds != 0 {
        options = options.deadline(Duration::from_millis(milliseconds));
    }
    let ForDump { ask_threads, anonymize } = FOR_DUMP.get();
    options.ask_threads = ask_threads;
    options = options.anonymize(anonymize);
    // The driver catches the panics of single reporters. This call catches all other panics.
    let _ = isolation::contain(|| drop(collect_reports(&options)));
}
