//! Threads that run their own reporters for collections of other threads.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use memory_reporter::{
    CollectOptions, Kind, MemoryReporter, ReportSet, Reports, Units, answer_here, collect_report,
    collect_reports, memory_report::WarningKind, register_local, register_strong,
};

use super::{By, DropBomb, alone, amounts};

/// The time limit of a step. A step of these tests exceeds it only because of a fault.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(500);

fn collect(at_most: Duration) -> ReportSet {
    collect_reports(&CollectOptions::new().ask_threads(at_most))
}

fn reports(name: &'static str, amount: i64) -> impl MemoryReporter {
    By(
        move || name,
        move |out: &mut Reports| out.report(name, Kind::Other, Units::Count, amount, "A number."),
    )
}

/// The warnings about a thread.
fn absent(set: &ReportSet, thread: &str) -> Vec<(WarningKind, String)> {
    let start = format!("thread {thread} (tid=");
    let about = set.warnings().iter().filter(|warning| warning.subject.starts_with(&start));
    about.map(|warning| (warning.kind, warning.message.clone())).collect()
}

/// Whether all threads have answered.
fn all_answered(set: &ReportSet) -> bool {
    !set.warnings().iter().any(|warning| warning.subject.starts_with("thread "))
}

/// A thread with an event loop.
struct Looping {
    ends: Arc<AtomicBool>,
    /// While it is true, the loop runs without calling `answer_here`.
    is_deaf: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Looping {
    /// Starts a thread with the reporters that `make` returns, and waits for the first turn of its loop.
    fn start<R: MemoryReporter + 'static>(
        name: &str,
        make: impl FnOnce() -> Vec<R> + Send + 'static,
    ) -> Self {
        let (ends, is_deaf) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (until, deaf) = (Arc::clone(&ends), Arc::clone(&is_deaf));
        let (turned, has_turned) = mpsc::channel();
        let run = move || {
            let _registrations: Vec<_> = make().into_iter().map(|one| register_local(Rc::new(one))).collect();
            while !until.load(Ordering::SeqCst) {
                if !deaf.load(Ordering::SeqCst) {
                    answer_here();
                }
                let _ = turned.send(());
                thread::sleep(Duration::from_millis(1));
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
        has_turned.recv().unwrap();
        Self { ends, is_deaf, thread: Some(thread) }
    }

    fn is_deaf(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::SeqCst);
        // Waits, so that a turn that is running can end.
        thread::sleep(Duration::from_millis(100));
    }
}

impl Drop for Looping {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn threads_answer_with_their_reporters_in_the_order_of_their_names() {
    let _alone = alone();
    let _first = Looping::start("first", || vec![reports("local-d", 4), reports("local-b", 2)]);
    let _second = Looping::start("second", || vec![reports("local-a", 1), reports("local-c", 3)]);
    let set = collect(PATIENCE);
    let local: Vec<_> = set.iter().filter(|report| report.path.starts_with("local-")).collect();
    let found: Vec<_> = local.iter().map(|report| (report.path, report.amount)).collect();
    assert_eq!(found, [("local-a", 1), ("local-b", 2), ("local-c", 3), ("local-d", 4)]);
    assert!(all_answered(&set), "{:?}", set.warnings());
    assert!(set.runs().iter().any(|run| run.reporter == "local-a"));
    // By default, a collection does not include other threads.
    assert!(!amounts(&collect_reports(&CollectOptions::new())).contains_key("local-a"));
}

#[test]
fn a_block_that_two_threads_share_is_counted_once() {
    let _alone = alone();
    let shared = Arc::new(vec![0_u8; 100_000]);
    let share = |name: &'static str, path: &'static str| {
        let shared = Arc::clone(&shared);
        Looping::start(name, move || {
            let report = move |out: &mut Reports| out.heap(path, &shared, "Shared memory.");
            vec![By(move || name, report)]
        })
    };
    let _threads = [share("one", "explicit/one"), share("other", "explicit/other")];
    let amounts = amounts(&collect(PATIENCE));
    let sum = amounts["explicit/one"] + amounts["explicit/other"];
    assert!((100_000..150_000).contains(&sum), "{amounts:?}");
}

#[test]
fn a_thread_that_does_not_answer_is_named_and_waited_for_once() {
    let _alone = alone();
    let looping = Looping::start("busy", || vec![reports("busy", 1)]);
    looping.is_deaf(true);
    let set = collect(SHORT);
    let why = "its reporter is missing: it did not call memory_reporter::answer_here() within 500ms";
    assert_eq!(absent(&set, "busy"), [(WarningKind::TimedOut, why.to_owned())]);
    let start = Instant::now();
    let set = collect(PATIENCE);
    assert!(start.elapsed() < PATIENCE / 2);
    assert_eq!(absent(&set, "busy")[0].0, WarningKind::Unavailable);
    looping.is_deaf(false);
    assert_eq!(amounts(&collect(PATIENCE))["busy"], 1);
}

/// Runs `begin` on a thread that then stays idle, and meanwhile runs `check`.
fn idle(name: &str, begin: impl FnOnce() + Send + 'static, check: impl FnOnce()) {
    let (done, is_done) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    let run = move || {
        let _registrations = [(); 2].map(|()| register_local(Rc::new(reports("idle", 1))));
        begin();
        ready.send(()).unwrap();
        let _ = is_done.recv();
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
    is_ready.recv().unwrap();
    check();
    drop(done);
    thread.join().unwrap();
    assert!(absent(&collect(SHORT), name).is_empty());
}

#[test]
fn a_thread_that_called_once_is_named() {
    let _alone = alone();
    idle("once", answer_here, || {
        let why = "its 2 reporters are missing: it did not call memory_reporter::answer_here() within 500ms";
        assert_eq!(absent(&collect(SHORT), "once"), [(WarningKind::TimedOut, why.to_owned())]);
    });
}

#[test]
fn a_thread_that_never_called_is_named_and_not_waited_for() {
    let _alone = alone();
    let check = || {
        let start = Instant::now();
        let set = collect(PATIENCE);
        assert!(start.elapsed() < PATIENCE / 2);
        let [(kind, message)] = &*absent(&set, "never") else { panic!("{:?}", set.warnings()) };
        assert_eq!(*kind, WarningKind::Unavailable);
        assert!(message.contains("it does not call memory_reporter::answer_here()"), "{message}");
        // The name of a thread may be private.
        let set = collect_reports(&CollectOptions::new().ask_threads(SHORT).anonymize(true));
        assert!(absent(&set, "never").is_empty());
        assert_eq!(absent(&set, "<anonymized>").len(), 1);
    };
    idle("never", || {}, check);
}

#[test]
fn a_thread_that_ends_meanwhile_is_not_waited_for() {
    let _alone = alone();
    let looping = Looping::start("ends", || vec![reports("ends", 1)]);
    looping.is_deaf(true);
    let end = Arc::clone(&looping.ends);
    let later = thread::spawn(move || {
        thread::sleep(SHORT);
        end.store(true, Ordering::SeqCst);
    });
    let start = Instant::now();
    let set = collect(PATIENCE);
    assert!(start.elapsed() < PATIENCE / 2);
    assert!(absent(&set, "ends").is_empty(), "{:?}", set.warnings());
    assert!(!amounts(&set).contains_key("ends"));
    later.join().unwrap();
}

#[test]
fn collections_at_once_all_get_answers() {
    let _alone = alone();
    let _threads = ["first", "second"].map(|name| Looping::start(name, move || vec![reports(name, 1)]));
    thread::scope(|scope| {
        let collections: Vec<_> = (0..8).map(|_| scope.spawn(|| collect(PATIENCE))).collect();
        for collection in collections {
            let set = collection.join().unwrap();
            assert!(all_answered(&set), "{:?}", set.warnings());
            let amounts = amounts(&set);
            assert_eq!((amounts["first"], amounts["second"]), (1, 1));
        }
    });
}

#[test]
fn two_threads_that_collect_do_not_wait_for_each_other_for_ever() {
    let _alone = alone();
    let together = Barrier::new(2);
    let sets = thread::scope(|scope| {
        let threads = ["left", "right"].map(|name| {
            let together = &together;
            scope.spawn(move || {
                let _registration = register_local(Rc::new(reports(name, 1)));
                answer_here();
                together.wait();
                let set = collect(SHORT);
                together.wait();
                (name, set)
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    for (name, set) in sets {
        assert_eq!(amounts(&set)[name], 1, "{:?}", set.warnings());
    }
}

#[test]
fn a_panic_on_the_thread_costs_only_its_own_reports() {
    let _alone = alone();
    let shared = Arc::new(vec![0_u8; 100_000]);
    let by_bad = Arc::clone(&shared);
    let make = move || {
        let bad = move |out: &mut Reports| {
            out.heap("explicit/bad", &by_bad, "Shared memory.");
            std::panic::panic_any(DropBomb);
        };
        let good = move |out: &mut Reports| out.heap("explicit/good", &shared, "Shared memory.");
        let reporters: Vec<Box<dyn MemoryReporter>> =
            vec![Box::new(By(|| "bad", bad)), Box::new(By(|| "good", good))];
        reporters
    };
    let _thread = Looping::start("panics", make);
    let set = collect(PATIENCE);
    assert!(
        amounts(&set)["explicit/good"] >= 100_000,
        "the good reporter counts the blocks that the bad reporter had counted"
    );
    assert!(!amounts(&set).contains_key("explicit/bad"));
    assert_eq!(super::warnings(&set, "bad")[0].0, WarningKind::Panicked);
    // The loop continues.
    assert!(amounts(&collect(PATIENCE)).contains_key("explicit/good"));
}

#[test]
fn inside_a_reporter_it_does_nothing() {
    let _alone = alone();
    let depth = Arc::new(AtomicUsize::new(0));
    let deepest = Arc::clone(&depth);
    let make = move || {
        let nested = move |out: &mut Reports| {
            assert_eq!(depth.fetch_add(1, Ordering::SeqCst), 0, "only one run at a time");
            answer_here();
            assert!(collect(PATIENCE).is_empty());
            depth.fetch_sub(1, Ordering::SeqCst);
            collect_report!(out, "nested", Other, Count, 1, "One report.");
        };
        vec![By(|| "nested", nested)]
    };
    let _thread = Looping::start("nests", make);
    let global = register_strong(Arc::new(By(|| "global", |_: &mut Reports| answer_here())));
    let set = collect(PATIENCE);
    assert_eq!(amounts(&set)["nested"], 1);
    assert_eq!(super::warnings(&set, "nested")[0].0, WarningKind::Nested);
    assert!(super::warnings(&set, "global").is_empty());
    assert_eq!(deepest.load(Ordering::SeqCst), 0);
    drop(global);
}

#[test]
fn a_reporter_that_hangs_costs_itself_and_those_behind_it() {
    let _alone = alone();
    let (release, is_released) = mpsc::channel::<()>();
    let make = move || {
        let hang = move |_: &mut Reports| assert!(is_released.recv().is_err());
        let reporters: Vec<Box<dyn MemoryReporter>> =
            vec![Box::new(reports("a-quick", 1)), Box::new(By(|| "b-hangs", hang))];
        reporters
    };
    let hangs = Looping::start("hangs", make);
    let _behind = Looping::start("behind", || vec![reports("behind", 1)]);
    let set = collect(SHORT);
    let amounts = amounts(&set);
    assert_eq!(amounts["a-quick"], 1, "the reporter that ran before the stuck one");
    let why = "some of its reports are missing: a reporter still ran after 500ms";
    assert_eq!(absent(&set, "hangs"), [(WarningKind::TimedOut, why.to_owned())]);
    // The thread `behind` either answered before the stuck reporter, or got no turn.
    assert_eq!(absent(&set, "behind").is_empty(), amounts.contains_key("behind"));
    drop(release);
    drop(hangs);
}

#[test]
fn a_borrowed_value_is_skipped_and_a_thread_without_reporters_is_not_asked() {
    let _alone = alone();
    let cell = Rc::new(std::cell::RefCell::new(reports("borrowed", 1)));
    let registration = register_local(cell.clone());
    let guard = cell.borrow_mut();
    // A collection does not wait for a thread that has never called `answer_here`.
    answer_here();
    let caller = thread::spawn(|| collect(PATIENCE));
    // Waits until the collection has its answer.
    while !caller.is_finished() {
        answer_here();
        thread::yield_now();
    }
    drop(guard);
    let set = caller.join().unwrap();
    assert!(!amounts(&set).contains_key("borrowed"));
    let warning = set.warnings().iter().find(|warning| warning.message.ends_with(": mutably borrowed"));
    assert_eq!(warning.unwrap().kind, WarningKind::Unavailable);
    drop(registration);
    let set = thread::spawn(|| collect(PATIENCE)).join().unwrap();
    assert!(all_answered(&set), "{:?}", set.warnings());
}

#[test]
fn at_the_end_of_a_thread_it_does_nothing() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            assert!(catch_unwind(AssertUnwindSafe(answer_here)).is_ok());
        }
    }
    std::thread_local! {
        static LAST: Last = const { Last };
    }
    let _alone = alone();
    let run = || {
        LAST.with(|_| {});
        let registration = register_local(Rc::new(reports("last", 1)));
        answer_here();
        // The registration is never dropped, so the reporter stays registered when the thread ends.
        let _registration = ManuallyDrop::new(registration);
    };
    thread::spawn(run).join().unwrap();
    let set = collect(PATIENCE);
    assert!(all_answered(&set) && !amounts(&set).contains_key("last"), "{:?}", set.warnings());
}
