//! Reporters: registration, collection, and limits for the damage that a bad reporter can do.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memory_reporter::{
    CollectOptions, Collection, Kind, MallocSizeOf, MemoryReporter, Report, ReportSet, Reports, Units,
    collect_report, collect_reports,
    counters::{CounterSite, CountingMalloc, MemoryCounter},
    file,
    memory_report::WarningKind,
    path_segment,
    pressure::{minimize_memory_usage, on_memory_pressure},
    register_local, register_strong, register_weak,
    tree::Forest,
};

memory_reporter::global_allocator!(std::alloc::System);

/// A reporter that a closure implements.
struct By<F>(&'static str, F);

impl<F: Fn(&mut Reports)> MemoryReporter for By<F> {
    fn name(&self) -> &str {
        self.0
    }

    fn collect_reports(&self, out: &mut Reports) {
        (self.1)(out);
    }
}

/// Locks the process's only registry, so that the tests that use it run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets a flag when a test ends, even if it fails, so that no thread waits for the flag forever.
struct SetAtEnd(Arc<AtomicBool>, bool);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::SeqCst);
    }
}

fn amounts(set: &ReportSet) -> HashMap<String, i64> {
    set.iter().map(|report| (report.path.to_owned(), report.amount)).collect()
}

fn has(set: &ReportSet, path: &str) -> bool {
    set.iter().any(|report| report.path == path)
}

/// All warnings, except warnings about slow reporters, which depend on the machine.
fn warnings(set: &ReportSet) -> Vec<(WarningKind, String)> {
    let warnings = set.warnings().iter().filter(|warning| warning.kind != WarningKind::Slow);
    warnings.map(|warning| (warning.kind, warning.to_string())).collect()
}

#[derive(Default)]
struct Linked;

impl MemoryReporter for Linked {
    fn name(&self) -> &str {
        "a-linked-reporter"
    }

    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(out, "explicit/linked/several/first", NonHeap, Bytes, 4096_u64, "The first of two.");
        collect_report!(out, "linked-things", Other, CountCumulative, 7_u8, "Things that were linked.");
    }
}

memory_reporter::register_reporter!(Linked);

static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/linked/names", Heap, &NAMES, "Memory used by the names.");

static TEXTURES: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!(
    "explicit/linked/textures",
    NonHeap,
    Bytes,
    TEXTURES.bytes(),
    "Memory mapped for textures."
);

#[test]
fn linked_reporters_and_the_process_are_collected() {
    let _alone = alone();
    NAMES.lock().unwrap().push("a name".to_owned());
    TEXTURES.allocated(core::ptr::null::<u8>(), 1 << 20);
    let set = collect_reports(&CollectOptions::new());
    let amounts = amounts(&set);
    assert_eq!(amounts["explicit/linked/several/first"], 4096);
    assert_eq!(amounts["linked-things"], 7);
    assert!(amounts["explicit/linked/names"] >= 24 + 6);
    assert_eq!(amounts["explicit/linked/textures"], 1 << 20);
    for path in [
        "heap-allocated",
        "heap-committed",
        "heap-overhead",
        "system-heap-allocated",
        "vsize",
        "resident",
        "resident-peak",
        "resident-unique",
        "page-faults-hard",
        "page-faults-soft",
        "explicit/memory-reporter/registry",
    ] {
        assert!(amounts.contains_key(path), "{path}");
    }
    assert!(amounts["resident"] <= amounts["resident-peak"].max(amounts["vsize"]));
    assert!(amounts["heap-allocated"] > 0 && amounts["resident-unique"] > 0);
    let process = format!("Main Process (pid {})", std::process::id());
    assert!(set.iter().all(|report| report.process == process));
    assert!(set.usable_size_known());
}

#[test]
fn built_in_reports_come_first_and_others_by_name() {
    let _alone = alone();
    let set = collect_reports(&CollectOptions::new());
    let reporters: Vec<_> = set.runs().iter().map(|run| run.reporter.as_str()).collect();
    assert_eq!(reporters[..6], ["heap", "process", "threads", "memory-reporter", "dmd", "cgroup"]);
    let mut sorted = reporters[6..].to_vec();
    sorted.sort_unstable();
    assert_eq!(reporters[6..], sorted);
    assert!(reporters.contains(&"a-linked-reporter"));
}

#[test]
fn every_thread_s_stack_is_there() {
    let (ready, wait) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("deep".into())
            .spawn_scoped(scope, || {
                let mut deep = [0_u8; 300_000];
                std::hint::black_box(&mut deep).fill(1);
                drop(Vec::<u8>::with_capacity(1));
                ready.wait();
                wait.wait();
            })
            .unwrap();
        ready.wait();
        let set = Collection::new().with_process().collect();
        wait.wait();
        let stack =
            set.iter().find(|r| r.path.starts_with("explicit/threads/stacks/deep (tid=")).expect("its stack");
        assert_eq!((stack.kind, stack.units), (Kind::NonHeap, Units::Bytes));
        assert!((300_000..2_200_000).contains(&stack.amount), "{stack:?}");
    });
}

#[test]
fn a_strong_registration_ends_with_its_handle() {
    let _alone = alone();
    let reporter = || {
        By("strong", |out: &mut Reports| collect_report!(out, "strong-one", Other, Count, 1, "One report."))
    };
    let registration = register_strong(Arc::new(reporter()));
    assert!(has(&collect_reports(&CollectOptions::new()), "strong-one"));
    drop(registration);
    assert!(!has(&collect_reports(&CollectOptions::new()), "strong-one"));
}

#[test]
fn a_weak_registration_ends_with_its_reporter_too() {
    let _alone = alone();
    let reporter = Arc::new(By("weak", |out: &mut Reports| {
        collect_report!(out, "weak-one", Other, Count, 1, "One report.");
    }));
    let _registration = register_weak(&reporter);
    assert!(has(&collect_reports(&CollectOptions::new()), "weak-one"));
    drop(reporter);
    assert!(!has(&collect_reports(&CollectOptions::new()), "weak-one"));
}

#[test]
fn a_reporter_of_one_thread_runs_there_only() {
    let _alone = alone();
    let thread = std::thread::current().id();
    let registration = register_local(Rc::new(By("local", move |out: &mut Reports| {
        assert_eq!(std::thread::current().id(), thread);
        collect_report!(out, "local-one", Other, Count, 1, "One report.");
    })));
    assert!(has(&collect_reports(&CollectOptions::new().deadline(Duration::from_secs(60))), "local-one"));
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(!has(&collect_reports(&CollectOptions::new()), "local-one")));
    });
    drop(registration);
    assert!(!has(&collect_reports(&CollectOptions::new()), "local-one"));
}

#[test]
fn a_panic_costs_only_its_own_reports() {
    struct PanicsAgain;
    impl Drop for PanicsAgain {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("and again");
            }
        }
    }
    let shared = Arc::new("counted by the good one".to_owned());
    let good = By("good", |out: &mut Reports| {
        collect_report!(out, "explicit/good", Heap, &shared, "Memory shared with the bad one.");
    });
    let bad = By("bad", |out: &mut Reports| {
        collect_report!(out, "explicit/bad", Heap, &shared, "Memory shared with the good one.");
        panic!("number {}", 7);
    });
    let worse = By("worse", |_: &mut Reports| std::panic::panic_any(PanicsAgain));
    let set = Collection::new().with(&bad).with(&worse).with(&good).collect();
    let amounts = amounts(&set);
    assert_eq!(amounts.len(), 1);
    assert!(
        amounts["explicit/good"] > 20,
        "the good reporter must count the value that the bad one had counted"
    );
    assert_eq!(
        warnings(&set),
        [
            (WarningKind::Panicked, "bad: panicked, its reports are left out: number 7".into()),
            (
                WarningKind::Panicked,
                "worse: panicked, its reports are left out: a panic without a text".into()
            ),
        ]
    );
}

#[test]
fn a_stuck_reporter_is_named_left_behind_and_not_run_again() {
    let _alone = alone();
    let (runs, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (in_reporter, done) = (Arc::clone(&runs), Arc::clone(&release));
    let _release = SetAtEnd(release, true);
    let registration = register_strong(Arc::new(By("stuck", move |out: &mut Reports| {
        in_reporter.fetch_add(1, Ordering::SeqCst);
        while !done.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        collect_report!(out, "stuck-one", Other, Count, 1, "One report.");
    })));
    let options = CollectOptions::new().deadline(Duration::from_millis(300));
    let about_stuck = |set: &ReportSet| -> Vec<String> {
        set.warnings().iter().filter(|w| w.subject == "stuck").map(|w| w.message.clone()).collect()
    };
    let start = Instant::now();
    let first = collect_reports(&options);
    let second = collect_reports(&options);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(has(&first, "linked-things") && !has(&first, "stuck-one"));
    assert_eq!(about_stuck(&first), ["did not answer within 300ms"]);
    assert_eq!(
        about_stuck(&second),
        ["has been running since an earlier collection; its reports are missing"]
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // Dropping the registration does not wait for the reporter.
    drop(registration);
}

#[test]
fn a_reporter_that_recovers_is_run_again() {
    let _alone = alone();
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let _recover = SetAtEnd(Arc::clone(&slow), false);
    let _registration = register_strong(Arc::new(By("recovers", move |out: &mut Reports| {
        while is_slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        collect_report!(out, "recovered", Other, Count, 1, "One report.");
    })));
    let options = CollectOptions::new().deadline(Duration::from_millis(200));
    assert!(!has(&collect_reports(&options), "recovered"));
    slow.store(false, Ordering::SeqCst);
    let start = Instant::now();
    while !has(&collect_reports(&options), "recovered") {
        assert!(start.elapsed() < Duration::from_secs(30), "the reporter never ran again");
    }
}

#[test]
fn a_slow_reporter_is_named() {
    let slow = By("slow", |out: &mut Reports| {
        std::thread::sleep(Duration::from_millis(20));
        collect_report!(out, "slow-one", Other, Count, 1, "One report.");
    });
    let options = CollectOptions::new().slow(Duration::from_millis(10));
    let set = Collection::new().with(&slow).options(options).collect();
    assert_eq!(set.warnings()[0].kind, WarningKind::Slow);
    assert!(has(&set, "slow-one"));
    assert!(set.runs()[0].time >= Duration::from_millis(20));
}

#[test]
fn collecting_inside_a_reporter_gives_nothing_and_a_warning() {
    let _alone = alone();
    let inner = Mutex::new(None);
    let nests = By("nests", |out: &mut Reports| {
        *inner.lock().unwrap() = Some(collect_reports(&CollectOptions::new()));
        collect_report!(out, "outer-one", Other, Count, 1, "One report.");
    });
    let set = Collection::new().with(&nests).collect();
    let inner = inner.lock().unwrap().take().unwrap();
    assert!(inner.is_empty());
    assert_eq!(warnings(&inner)[0].0, WarningKind::Nested);
    assert!(has(&set, "outer-one"));
    assert_eq!(
        warnings(&set),
        [(WarningKind::Nested, "nests: called collect_reports; nothing was collected there".into())]
    );
}

#[test]
fn bad_reports_become_warnings_and_good_ones_stay() {
    let bad = By("bad", |out: &mut Reports| {
        out.report("", Kind::Other, Units::Count, 1, "An empty path.");
        out.report("a//b", Kind::Other, Units::Count, 1, "An empty segment.");
        out.report("/a", Kind::Other, Units::Count, 1, "A leading slash.");
        out.report("a/", Kind::Other, Units::Count, 1, "A trailing slash.");
        out.report("a\u{1b}[0m", Kind::Other, Units::Count, 1, "A control character.");
        out.report("explicit", Kind::Heap, Units::Bytes, 1, "The tree itself.");
        out.report("explicit/a", Kind::Other, Units::Bytes, 1, "Neither heap nor not.");
        out.report("explicit/b", Kind::Heap, Units::Count, 1, "No bytes.");
        out.report("heap", Kind::Heap, Units::Percentage, 1, "No bytes.");
        out.report("negative", Kind::Other, Units::Bytes, -1, "Less than nothing.");
        out.report("no-stop", Kind::Other, Units::Bytes, 1, "No full stop");
        out.report("twice", Kind::Other, Units::Bytes, 1, "In bytes.");
        out.report("twice", Kind::Other, Units::Count, 1, "As a count.");
        out.report("explicit/two", Kind::Heap, Units::Bytes, 1, "On the heap.");
        out.report("explicit/two", Kind::NonHeap, Units::Bytes, 1, "Not on the heap.");
    });
    let set = Collection::new().with(&bad).collect();
    let paths: Vec<_> = set.iter().map(|report| report.path).collect();
    assert_eq!(paths, ["negative", "no-stop", "twice", "twice", "explicit/two", "explicit/two"]);
    let texts: Vec<_> = set.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "bad: ``: the path is empty",
            "bad: `a//b`: the path has an empty segment: `//`",
            "bad: `/a`: the path starts with `/`",
            "bad: `a/`: the path ends with `/`",
            "bad: `a\\u{1b}[0m`: the path has a control character",
            "bad: `explicit`: `explicit` is the tree, not a report: write the path of a part, as in `explicit/cache`",
            "bad: `explicit/a`: a report under `explicit/` must be of kind Heap or NonHeap",
            "bad: `explicit/b`: a report under `explicit/` must be in units of Bytes",
            "bad: `heap`: a report of kind Heap must be in units of Bytes",
            "bad: `negative`: the amount is negative",
            "bad: `no-stop`: the description does not end in a full stop: write full sentences",
            "twice: reported in BYTES and in COUNT",
            "explicit/two: reported as HEAP and as NONHEAP",
        ]
    );
}

#[test]
fn shared_memory_counts_once_in_the_explicit_tree_and_always_elsewhere() {
    let shared = Arc::new([1_u8; 1000]);
    let first = By("first", |out: &mut Reports| {
        collect_report!(out, "outside", Heap, &shared, "Does not count for the tree.");
        collect_report!(out, "explicit/first", Heap, &shared, "Counts it.");
    });
    let second = By("second", |out: &mut Reports| {
        collect_report!(out, "explicit/second", Heap, &shared, "Reaches what was counted.");
        collect_report!(out, "outside-too", Heap, &shared, "Does not count for the tree.");
    });
    let set = Collection::new().with(&first).with(&second).collect();
    let amounts = amounts(&set);
    assert!(amounts["explicit/first"] >= 1016);
    assert_eq!(amounts["explicit/second"], 0);
    assert_eq!(amounts["outside"], amounts["explicit/first"]);
    assert_eq!(amounts["outside-too"], amounts["explicit/first"]);
}

#[test]
fn what_was_skipped_is_told_with_its_reporter() {
    let lock = Mutex::new("unseen".to_owned());
    let _held = lock.lock().unwrap();
    let reporter = By("looks", |out: &mut Reports| {
        collect_report!(out, "explicit/locked", Heap, &lock, "Memory behind a lock.");
        out.heap_with("explicit/hand", |ops| lock.size_of_excluding_this(ops), "Measured by hand.");
    });
    let set = Collection::new().with(&reporter).collect();
    let skipped: Vec<_> = set.skipped().map(ToString::to_string).collect();
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].ends_with("Mutex<alloc::string::String>: locked (2 times)"), "{skipped:?}");
    assert_eq!(warnings(&set), [(WarningKind::Unavailable, format!("looks: not measured: {}", skipped[0]))]);
    assert!(about_memory::text(&set).to_string().contains("locked (2 times)"));
}

#[test]
fn reporters_are_told_to_anonymize() {
    let reporter = By("private", |out: &mut Reports| {
        let name = if out.anonymize() { "<anonymized-1>".to_owned() } else { path_segment("/home/me/file") };
        collect_report!(out, format!("file({name})"), Other, Count, 1, "An open file.");
    });
    let paths = |options| -> Vec<String> {
        let set = Collection::new().with(&reporter).options(options).collect();
        set.iter().map(|report| report.path.to_owned()).collect()
    };
    assert_eq!(paths(CollectOptions::new()), [r"file(\home\me\file)"]);
    assert_eq!(paths(CollectOptions::new().anonymize(true)), ["file(<anonymized-1>)"]);
}

#[test]
fn minimizing_runs_every_hook_three_times() {
    let _alone = alone();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let bad = on_memory_pressure(|| panic!("a bad hook"));
    let hook = on_memory_pressure(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    minimize_memory_usage();
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    Collection::new().options(CollectOptions::new().minimize(true)).collect();
    assert_eq!(calls.load(Ordering::SeqCst), 6);
    drop((bad, hook));
    minimize_memory_usage();
    assert_eq!(calls.load(Ordering::SeqCst), 6);
}

/// A reporter that records whether a collection calls it after the program has unregistered it.
struct Final {
    unregistered: AtomicBool,
    called_after: AtomicBool,
}

impl MemoryReporter for Final {
    fn collect_reports(&self, _: &mut Reports) {
        std::thread::yield_now();
        if self.unregistered.load(Ordering::SeqCst) {
            self.called_after.store(true, Ordering::SeqCst);
        }
    }
}

#[test]
fn unregistering_while_others_collect_is_final() {
    let _alone = alone();
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stop = SetAtEnd(Arc::clone(&stop), true);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    collect_reports(&CollectOptions::new());
                }
            });
        }
        for round in 0..300 {
            let reporter = Arc::new(Final {
                unregistered: AtomicBool::new(false),
                called_after: AtomicBool::new(false),
            });
            let registration =
                if round % 2 == 0 { register_weak(&reporter) } else { register_strong(reporter.clone()) };
            std::thread::yield_now();
            drop(registration);
            reporter.unregistered.store(true, Ordering::SeqCst);
            std::thread::yield_now();
            assert!(!reporter.called_after.load(Ordering::SeqCst), "round {round}");
        }
    });
}

#[test]
fn a_reporter_may_unregister_itself() {
    let _alone = alone();
    let slot = Arc::new(Mutex::new(None));
    let own = Arc::clone(&slot);
    let registration = register_strong(Arc::new(By("leaves", move |out: &mut Reports| {
        collect_report!(out, "leaves-one", Other, Count, 1, "One report.");
        drop(own.lock().unwrap().take());
    })));
    *slot.lock().unwrap() = Some(registration);
    assert!(has(&collect_reports(&CollectOptions::new()), "leaves-one"));
    assert!(!has(&collect_reports(&CollectOptions::new()), "leaves-one"));
}

#[test]
fn a_saved_collection_has_what_firefox_needs() {
    let _alone = alone();
    let path = std::env::temp_dir().join(format!("memory-report-{}.json.gz", std::process::id()));
    let set = collect_reports(&CollectOptions::new());
    file::write(&path, &set).unwrap();
    let read = file::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read.iter().collect::<Vec<_>>(), set.iter().collect::<Vec<_>>());
    for path in ["heap-allocated", "resident", "resident-peak", "resident-unique"] {
        assert!(has(&read, path), "{path}");
    }
    assert!(!read.iter().any(|report| report.path.contains("heap-unclassified")));
    assert!(Forest::new(&read).amount("explicit/heap-unclassified").is_some());
    assert!(about_memory::text(&read).to_string().contains("─ heap-unclassified"));
}

static FOREIGN: MemoryCounter = MemoryCounter::new();

struct Foreign;

impl CounterSite for Foreign {
    const COUNTER: &'static MemoryCounter = &FOREIGN;
}

#[test]
#[allow(unsafe_code, reason = "calls C allocation functions")]
fn the_c_allocation_functions_count() {
    type Malloc = CountingMalloc<Foreign>;
    let zeros = Malloc::calloc(10, 10);
    assert!(!zeros.is_null() && (116..140).contains(&FOREIGN.bytes()), "{}", FOREIGN.bytes());
    // SAFETY: `calloc` returned a live block of 100 zeroed bytes.
    assert!(unsafe { std::slice::from_raw_parts(zeros.cast::<u8>(), 100) }.iter().all(|byte| *byte == 0));
    // SAFETY: the block is live and has 100 bytes, and no other code uses it.
    unsafe { zeros.cast::<u8>().write_bytes(7, 100) };
    // SAFETY: `zeros` is a live block of these functions, and this test does not use it after the call.
    let larger = unsafe { Malloc::realloc(zeros, 100_000) };
    assert!((100_016..110_000).contains(&FOREIGN.bytes()), "{}", FOREIGN.bytes());
    // SAFETY: the block is live, and `realloc` kept its first 100 bytes, which the test has written.
    assert!(unsafe { std::slice::from_raw_parts(larger.cast::<u8>(), 100) }.iter().all(|byte| *byte == 7));
    assert_eq!(larger.addr() % 16, 0);
    assert!(Malloc::malloc(usize::MAX).is_null() && Malloc::calloc(usize::MAX, 2).is_null());
    // SAFETY: `larger` is a live block of these functions. A failed call does not change it.
    assert!(unsafe { Malloc::realloc(larger, usize::MAX - 20) }.is_null());
    // SAFETY: `larger` is a live block of these functions, freed once.
    unsafe { Malloc::free(larger) };
    // SAFETY: null is allowed.
    unsafe { Malloc::free(std::ptr::null_mut()) };
    assert_eq!(FOREIGN.bytes(), 0);
}

#[test]
fn sets_append_whole() {
    let report = |path, description| Report {
        process: "p",
        path,
        kind: Kind::Other,
        units: Units::Count,
        amount: 1,
        description,
    };
    let (mut first, mut second) = (ReportSet::new(), ReportSet::new());
    first.push(report("a", "A."));
    second.push(report("b", "B."));
    second.push(report("c", "A."));
    first.append(second);
    let all: Vec<_> = first.iter().collect();
    assert_eq!(all, [report("a", "A."), report("b", "B."), report("c", "A.")]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_resident_map_adds_up_to_resident() {
    let _alone = alone();
    let touched = vec![1_u8; 64 << 20];
    let set = collect_reports(&CollectOptions::new().resident_map(true));
    let sum = |start: &str| -> i64 {
        set.iter().filter(|report| report.path.starts_with(start)).map(|report| report.amount).sum()
    };
    let resident = sum("resident") - sum("resident-");
    let mapped = sum("resident-map/");
    // The kernel counts pages lazily, and other tests run at the same time.
    assert!((resident - mapped).abs() < 24 << 20, "resident {resident}, mapped {mapped}");
    assert!(sum("resident-map/explicit/heap") >= 64 << 20);
    for kind in ["code", "files"] {
        assert!(sum(&format!("resident-map/{kind}/")) > 0, "{kind}");
    }
    // The proportional tree contains every kind of memory, because the bytes of `explicit` are not subtracted.
    for kind in ["code", "files", "heap", "anonymous", "stacks"] {
        assert!(sum(&format!("proportional-map/{kind}/")) > 0, "{kind}");
    }
    let proportional = sum("proportional-map/");
    assert!(proportional > 64 << 20 && proportional <= mapped + (24 << 20), "{proportional}");
    // A collection without the option neither waits for the map nor reports it.
    let plain = collect_reports(&CollectOptions::new());
    assert!(plain.iter().all(|report| !report.path.starts_with("resident-map/")));
    assert_eq!(touched[touched.len() - 1], 1);
}

#[cfg(target_os = "linux")]
#[test]
fn an_anonymized_resident_map_names_no_file() {
    let _alone = alone();
    let set = collect_reports(&CollectOptions::new().resident_map(true).anonymize(true));
    let paths: Vec<_> = set.iter().map(|report| report.path.to_owned()).collect();
    assert!(paths.iter().any(|path| path == "resident-map/code/<anonymized>"), "{paths:?}");
    assert!(!paths.iter().any(|path| path.starts_with("resident-map/") && path.contains('\\')), "{paths:?}");
}
