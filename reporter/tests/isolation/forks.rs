//! Forks while other threads use the crate: the child process has copies of all locks, but none of these threads.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "forks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use memory_reporter::{
    CollectOptions, MemoryReporter, Reports, collect_reports,
    pressure::on_memory_pressure,
    register_strong,
    scopes::{Scope, ScopeError},
    tags::Tag,
    watching::{GarbageCollectionCycle, on_garbage_collection, register_nursery},
};

use super::{By, alone};

fn one_report() -> impl MemoryReporter + Send + Sync {
    By(
        || "in parent and child",
        |out: &mut Reports| memory_reporter::collect_report!(out, "in-child", Other, Count, 1, "One report."),
    )
}

/// Calls all code that takes a lock. Returns whether the calls succeeded.
fn uses_all(round: usize) -> bool {
    let registration = register_strong(Arc::new(one_report()));
    let hooks = (on_memory_pressure(|| ()), on_garbage_collection(|_| ()));
    let nursery = register_nursery([0_u8; 4].as_ptr_range());
    let tag = Tag::new(format!("explicit/fork/{}", round % 50));
    let is_exact = Scope::named("fork").run(|| Scope::measure(|| vec![1_u8; 10])).1.figures().is_ok();
    GarbageCollectionCycle::begin("a collector", "a test").end();
    let set = collect_reports(&CollectOptions::new());
    drop((registration, hooks, nursery));
    is_exact && tag != Tag::NONE && set.iter().any(|report| report.path == "in-child")
}

#[test]
fn a_child_collects_whatever_the_parent_s_threads_do() {
    const SECONDS: u32 = 60;
    let _alone = alone();
    let is_over = AtomicBool::new(false);
    let bad = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut round = 0;
                while !is_over.load(Ordering::Relaxed) {
                    uses_all(round);
                    round += 1;
                }
            });
        }
        let bad = (0..300).filter(|round| {
            // SAFETY: the child runs only code of this test, and ends without the test's destructors.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: the function has no precondition. The alarm ends a child that waits forever.
                unsafe { libc::alarm(SECONDS) };
                let went_well = uses_all(*round);
                // SAFETY: the function has no precondition.
                unsafe { libc::_exit(i32::from(!went_well)) };
            }
            let mut status = 0;
            // SAFETY: `status` has room for the status, and `child` is the child process of the fork above.
            let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
            ended != child || status != 0
        });
        let bad = bad.count();
        is_over.store(true, Ordering::Relaxed);
        bad
    });
    assert_eq!(bad, 0, "of 300 children");
}

#[test]
fn a_child_does_not_guess_the_figures_of_its_parent_s_scope() {
    let _alone = alone();
    let (kept, measured) = Scope::measure(|| vec![1_u8; 10]);
    let parent = std::process::id();
    // SAFETY: the child only reads figures, and ends without the code of other threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_error = measured.scope().figures() == Err(ScopeError::OtherProcess { process: parent });
        // SAFETY: ends the child.
        unsafe { libc::_exit(if is_error { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` has room for the status of this process's child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(measured.scope().figures().map(|figures| figures.retained_bytes), Ok(10));
    drop(kept);
}
