//! A fault of a reporter costs only its own reports.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answer_here;
mod collecting;
mod conventions;
mod counting;
mod destructors;
mod endings;
mod forks;
mod garbage_collection;
mod locks;
mod macros;
mod names;
mod pressure;
mod wrapped;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memory_reporter::{
    MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reading, ReportSet, Reports, memory_report::WarningKind,
};

memory_reporter::global_allocator!(std::alloc::System);

/// A reporter made of two closures: the first returns its name, and the second makes its reports.
struct By<N, F>(N, F);

impl<N: Fn() -> &'static str, F: Fn(&mut Reports)> MemoryReporter for By<N, F> {
    fn name(&self) -> &str {
        (self.0)()
    }

    fn collect_reports(&self, out: &mut Reports) {
        (self.1)(out);
    }
}

/// Panics while it is measured.
struct Bomb;

impl MallocSizeOf for Bomb {
    fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        panic!("the bomb")
    }
}

/// Panics when it is dropped, unless that would end the process.
struct DropBomb;

impl Drop for DropBomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the destructor");
        }
    }
}

/// A lock for tests that use global state of the program: they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn amounts(set: &ReportSet) -> HashMap<String, i64> {
    set.iter().map(|report| (report.path.to_owned(), report.amount)).collect()
}

/// The warnings about one subject, without `Slow`: on a busy machine any reporter may be slow.
fn warnings<'a>(set: &'a ReportSet, subject: &str) -> Vec<(WarningKind, &'a str)> {
    let is_asked = |kind: WarningKind, of: &str| kind != WarningKind::Slow && of == subject;
    let warnings = set.warnings().iter().filter(|warning| is_asked(warning.kind, &warning.subject));
    warnings.map(|warning| (warning.kind, warning.message.as_str())).collect()
}
