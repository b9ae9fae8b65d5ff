//! Reporters that have other threads collect.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use memory_reporter::{
    CollectOptions, Collection, MemoryReporter, ReportSet, Reports, Warning, WarningKind, collect_reports,
    register_strong,
};

use super::{By, alone, warnings};

fn is_refused(set: &ReportSet) -> bool {
    set.is_empty()
        && matches!(set.warnings(), [Warning { kind: WarningKind::Nested, subject, .. }] if subject == "collect_reports")
}

fn collect() -> ReportSet {
    collect_reports(&CollectOptions::new())
}

/// Has a thread collect, and waits for it or not.
fn delegate(
    name: &'static str,
    waits: bool,
    runs: &Arc<AtomicUsize>,
) -> impl MemoryReporter + Send + Sync + use<> {
    let runs = Arc::clone(runs);
    By(
        move || name,
        move |_: &mut Reports| {
            // Nobody is to wait for ever if nothing bounds them.
            if runs.fetch_add(1, Ordering::SeqCst) > 5000 {
                return;
            }
            let thread = thread::spawn(collect);
            if waits {
                drop(thread.join().expect("a collection does not panic"));
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
    assert!(message.contains("a reporter must not have another thread collect"), "{message}");
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
    let registrations =
        ["first", "second"].map(|name| register_strong(Arc::new(delegate(name, false, &runs))));
    drop(collect());
    // Until no other has run for a while.
    let mut before = usize::MAX;
    while before != runs.load(Ordering::SeqCst) {
        before = runs.load(Ordering::SeqCst);
        thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(before < 5000, "{before}");
    drop(registrations);
    assert!(!is_refused(&collect()));
}

#[test]
fn threads_that_collect_at_once_all_get_reports() {
    let _alone = alone();
    const THREADS: usize = 16;
    let together = Arc::new(Barrier::new(THREADS));
    let wait = Arc::clone(&together);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let _registration = register_strong(Arc::new(By(
        || "waits",
        move |out: &mut Reports| {
            if !over.load(Ordering::SeqCst) {
                wait.wait();
            }
            memory_reporter::collect_report!(out, "together", Other, Count, 1, "One report.");
        },
    )));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(collect)).collect();
        for thread in threads {
            let set = thread.join().unwrap();
            assert!(set.iter().any(|report| report.path == "together"));
            assert!(set.warnings().iter().all(|warning| warning.kind != WarningKind::Nested));
        }
    });
    is_over.store(true, Ordering::SeqCst);
    // However many there were before, as long as they ended.
    for _ in 0..1500 {
        assert!(Collection::new().collect().warnings().is_empty());
    }
}
