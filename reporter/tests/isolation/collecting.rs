//! Reporters that start collections on other threads.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use memory_reporter::{
    CollectOptions, Collection, MemoryReporter, ReportSet, Reports, collect_reports,
    memory_report::{Warning, WarningKind},
    register_strong,
};

use super::{By, alone, warnings};

fn is_refused(set: &ReportSet) -> bool {
    set.is_empty()
        && matches!(set.warnings(), [Warning { kind: WarningKind::Nested, subject, .. }] if subject == "collect_reports")
}

std::thread_local! {
    /// Whether the thread collects for a test of this module. Other tests collect at the same time, and their
    /// collections run all reporters, including the reporters of these tests.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

fn collect() -> ReportSet {
    IS_OURS.set(true);
    let set = collect_reports(&CollectOptions::new());
    IS_OURS.set(false);
    set
}

/// A reporter that starts a collection on another thread. If `waits`, it waits for that thread. A thread that has not
/// ended holds a reference to `runs`.
fn delegate(
    name: &'static str,
    waits: bool,
    runs: &Arc<AtomicUsize>,
) -> impl MemoryReporter + Send + Sync + use<> {
    let runs = Arc::clone(runs);
    By(
        move || name,
        move |_: &mut Reports| {
            // Ends the test even if the number of collections is not bounded.
            if !IS_OURS.get() || runs.fetch_add(1, Ordering::SeqCst) > 5000 {
                return;
            }
            let until_its_end = Arc::clone(&runs);
            let thread = thread::spawn(move || {
                drop(collect());
                drop(until_its_end);
            });
            if waits {
                thread.join().expect("a collection does not panic");
            }
        },
    )
}

#[test]
fn one_that_waits_for_its_thread_is_bounded_and_named() {
    let _alone = alone();
    let runs = Arc::default();
    let registration = register_strong(Arc::new(delegate("delegates", true, &runs)));
    let set = collect();
    let (kind, message) = warnings(&set, "delegates")[0];
    assert_eq!(kind, WarningKind::Nested);
    assert!(message.contains("a reporter must not start a collection on another thread"), "{message}");
    assert!(runs.load(Ordering::SeqCst) <= 32, "{runs:?}");
    drop(registration);
    let set = collect();
    assert!(!set.is_empty() && set.warnings().iter().all(|warning| warning.kind != WarningKind::Nested));
}

#[test]
fn several_that_wait_for_their_threads_are_not_run_over_and_over() {
    let _alone = alone();
    let runs = Arc::default();
    let registrations =
        ["first", "second", "third"].map(|name| register_strong(Arc::new(delegate(name, true, &runs))));
    let set = collect();
    assert_eq!(warnings(&set, "first")[0].0, WarningKind::Nested);
    assert!(runs.load(Ordering::SeqCst) <= 3 * 32, "{runs:?}");
    drop(registrations);
    assert!(!is_refused(&collect()));
}

#[test]
fn those_that_do_not_wait_come_to_an_end() {
    let _alone = alone();
    let runs: Arc<AtomicUsize> = Arc::default();
    let delegates = ["first", "second"].map(|name| register_strong(Arc::new(delegate(name, false, &runs))));
    // The collection of this thread lasts until the other collections have ended. So each of them starts during another
    // collection, even if the system starts its thread late. If another collection runs the third reporter at the same
    // time, this collection leaves it out and does not wait.
    let (others, this_thread) = (Arc::clone(&runs), thread::current().id());
    let references = 2 + delegates.len();
    let lasts = register_strong(Arc::new(By(
        || "third",
        move |_: &mut Reports| {
            if thread::current().id() == this_thread {
                while Arc::strong_count(&others) > references {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        },
    )));
    drop(collect());
    while Arc::strong_count(&runs) > references {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(runs.load(Ordering::SeqCst) < 5000, "{runs:?}");
    drop((delegates, lasts));
    assert!(!is_refused(&collect()));
}

#[test]
fn threads_that_collect_at_once_all_get_reports() {
    let _alone = alone();
    const THREADS: usize = 16;
    let (arrived, returned) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (arrivals, returns) = (Arc::clone(&arrived), Arc::clone(&returned));
    let _registration = register_strong(Arc::new(By(
        || "waits",
        move |out: &mut Reports| {
            if IS_OURS.get() {
                arrivals.fetch_add(1, Ordering::SeqCst);
                // If a collection returns before all threads have arrived, it was refused: the threads then end, and
                // the test fails.
                while arrivals.load(Ordering::SeqCst) < THREADS && returns.load(Ordering::SeqCst) == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            memory_reporter::collect_report!(out, "together", Other, Count, 1, "One report.");
        },
    )));
    thread::scope(|scope| {
        let wait_and_collect = || {
            let set = collect();
            returned.fetch_add(1, Ordering::SeqCst);
            set
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(wait_and_collect)).collect();
        for thread in threads {
            let set = thread.join().unwrap();
            assert!(set.iter().any(|report| report.path == "together"), "{:?}", set.warnings());
            assert!(set.warnings().iter().all(|warning| warning.kind != WarningKind::Nested));
        }
    });
    assert_eq!(arrived.load(Ordering::SeqCst), THREADS);
    // The number of earlier collections does not matter if they have ended.
    for _ in 0..1500 {
        let set = Collection::new().collect();
        let warnings: Vec<_> = set.warnings().iter().filter(|one| one.kind != WarningKind::Slow).collect();
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}
