//! Code of the program that uses this crate while the crate waits for that code: no call may wait forever.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use memory_reporter::{
    CollectOptions, MemoryReporter, Registration, ReportSet, Reports, collect_reports,
    memory_report::WarningKind, register_strong, tag, tags::Tag, watching::MemoryObserver,
};

use super::{By, alone, warnings};

/// Runs code that must not wait, and returns its result.
fn ends<T: Send + 'static>(code: impl FnOnce() -> T + Send + 'static) -> T {
    let (end, ended) = mpsc::channel();
    thread::spawn(move || drop(end.send(code())));
    ended.recv_timeout(Duration::from_secs(60)).expect("the code should end without a panic")
}

/// A path whose text is the result of code.
struct PathOf<F>(F);

impl<F: Fn() -> &'static str> AsRef<str> for PathOf<F> {
    fn as_ref(&self) -> &str {
        (self.0)()
    }
}

#[test]
fn the_path_of_a_tag_may_come_from_code_that_uses_tags() {
    let inner = ends(|| {
        let path = PathOf(|| {
            let _tag = tag("explicit/inner");
            let mut text = String::new();
            write!(text, "{:?}", Tag::new("explicit/other")).unwrap();
            assert_eq!(text, "Tag(Some(\"explicit/other\"))");
            assert!(!collect_reports(&CollectOptions::new()).is_empty());
            "explicit/outer"
        });
        let _tag = tag(path);
        format!("{:?}", Tag::current())
    });
    assert_eq!(inner, "Tag(Some(\"explicit/outer\"))");
}

#[test]
fn the_path_of_a_tag_is_found_out_under_the_tag_before() {
    let before = Tag::new("explicit/before");
    let found = before.run(|| {
        let current = Cell::new(Tag::NONE);
        let path = PathOf(|| {
            current.set(Tag::current());
            "explicit/after"
        });
        let after = Tag::new(path);
        assert_eq!(Tag::current(), before);
        (current.get(), after)
    });
    assert_eq!(found, (before, Tag::new("explicit/after")));
}

type Slot = Arc<Mutex<Option<Registration>>>;

std::thread_local! {
    /// The number of this thread's collection.
    static COLLECTION: Cell<usize> = const { Cell::new(0) };
}

/// A reporter with number N. In the run of collection N, it waits until all reporters run, and then drops the
/// registration in the next slot.
fn drops_another(
    number: usize,
    other: &Slot,
    together: &Arc<Barrier>,
) -> impl MemoryReporter + Send + Sync + use<> {
    let (other, together) = (Arc::clone(other), Arc::clone(together));
    By(
        || "drops another",
        move |out: &mut Reports| {
            if COLLECTION.get() == number {
                together.wait();
                let registration = other.lock().unwrap().take();
                drop(registration);
                let path = format!("reporter-{number}");
                memory_reporter::collect_report!(out, path, Other, Count, 1, "One report.");
            }
        },
    )
}

#[test]
fn reporters_may_drop_each_other_s_registrations() {
    let _alone = alone();
    for members in 2..5 {
        let sets: Vec<ReportSet> = ends(move || {
            let together = Arc::new(Barrier::new(members));
            let slots: Vec<Slot> = (0..members).map(|_| Slot::default()).collect();
            for (place, slot) in slots.iter().enumerate() {
                let other = &slots[(place + 1) % members];
                let reporter = drops_another(place + 1, other, &together);
                *slot.lock().unwrap() = Some(register_strong(Arc::new(reporter)));
            }
            let collect = |number| {
                COLLECTION.set(number);
                collect_reports(&CollectOptions::new())
            };
            let threads: Vec<_> =
                (1..=members).map(|number| thread::spawn(move || collect(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (place, set) in sets.iter().enumerate() {
            let own = format!("reporter-{}", place + 1);
            assert!(set.iter().any(|report| report.path == own), "{members}: {own}");
        }
        let after = collect_reports(&CollectOptions::new());
        assert!(after.runs().iter().all(|run| run.reporter != "drops another"));
    }
}

/// Follows the advice of `Registration` for a reporter that waits for the thread that drops its registration.
#[test]
fn a_deadline_ends_the_wait_of_a_thread_that_the_reporter_waits_for() {
    let _alone = alone();
    let set = ends(|| {
        let slot = Slot::default();
        let own = Arc::clone(&slot);
        let reporter = By(
            || "waits for its end",
            move |_: &mut Reports| {
                let registration = own.lock().unwrap().take();
                thread::spawn(|| drop(registration)).join().unwrap();
            },
        );
        *slot.lock().unwrap() = Some(register_strong(Arc::new(reporter)));
        collect_reports(&CollectOptions::new().deadline(Duration::from_millis(100)))
    });
    assert_eq!(warnings(&set, "waits for its end")[0].0, WarningKind::TimedOut);
}

#[test]
fn the_destructor_of_an_observer_s_handler_may_use_the_observer() {
    struct UsesObserver(Arc<MemoryObserver>);
    impl Drop for UsesObserver {
        fn drop(&mut self) {
            assert!(!self.0.tracking_allocation_sites());
        }
    }
    ends(|| {
        let observer = Arc::new(MemoryObserver::new());
        let user = UsesObserver(Arc::clone(&observer));
        observer.set_on_garbage_collection(Some(Arc::new(move |_, _| {
            let _ = &user;
        })));
        observer.set_on_garbage_collection(None);
    });
}
