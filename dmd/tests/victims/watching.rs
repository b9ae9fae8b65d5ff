//! A program that observes its own allocations. Usage, with `DMD`: `watching CASE`; without `DMD`: `watching nothing`.
//! Each case checks its own result, and the program fails if the check fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;
use std::hint::black_box;
use std::thread;

use dmd::{AllocationsLogEntry, ClassName, MemoryObserver, ObserverError};
use memory_reporter::watching::GarbageCollectionCycle;

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

struct Point {
    _x: f64,
    _y: [f64; 8],
}

#[inline(never)]
fn make_point() -> Box<Point> {
    black_box(Box::new(Point { _x: 1.0, _y: [2.0; 8] }))
}

#[inline(never)]
fn make_bytes(count: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(count))
}

/// Allocates and frees this many blocks with this many bytes each.
#[inline(never)]
fn churn(blocks: usize, bytes: usize) {
    (0..blocks).for_each(|_| drop(make_bytes(bytes)));
}

fn tracking() -> MemoryObserver {
    let observer = MemoryObserver::new();
    observer.set_tracking_allocation_sites(true).unwrap();
    observer
}

/// The entries of blocks with this many bytes.
fn of(entries: &[AllocationsLogEntry], bytes: u64) -> Vec<&AllocationsLogEntry> {
    entries.iter().filter(|entry| entry.requested == bytes).collect()
}

/// No engine records.
fn nothing() {
    let observer = MemoryObserver::new();
    assert_eq!(observer.set_tracking_allocation_sites(true), Err(ObserverError::NotRecording));
    assert!(!observer.tracking_allocation_sites());
    assert_eq!(observer.drain_allocations_log(), Err(ObserverError::NotTracking));
    assert!(!observer.allocations_log_overflowed());
    assert_eq!(dmd::allocation_site(&raw const *make_point()), None);
}

/// An observer cannot track allocation sites while the engine takes a sample.
fn sampled() {
    let observer = MemoryObserver::new();
    let error = observer.set_tracking_allocation_sites(true).unwrap_err();
    assert_eq!(error, ObserverError::Sampling);
    assert!(error.to_string().contains("start the program without --sample-bytes"), "{error}");
    assert!(!observer.tracking_allocation_sites());
}

fn settings() {
    let observer = MemoryObserver::new();
    assert!(!observer.tracking_allocation_sites());
    assert_eq!(observer.allocation_sampling_probability(), 1.0);
    assert_eq!(observer.max_allocations_log_length(), 5000);
    for bad in [-0.1, 1.1, f64::INFINITY] {
        assert_eq!(
            observer.set_allocation_sampling_probability(bad),
            Err(ObserverError::BadProbability(bad))
        );
    }
    let error = observer.set_allocation_sampling_probability(f64::NAN).unwrap_err();
    assert!(error.to_string().contains("NaN is not a number between 0 and 1"), "{error}");
    for bad in [0, 1 << 31, u64::MAX] {
        assert_eq!(observer.set_max_allocations_log_length(bad), Err(ObserverError::BadLength(bad)));
    }
    assert_eq!(observer.drain_allocations_log(), Err(ObserverError::NotTracking));
    assert_eq!(
        (observer.allocation_sampling_probability(), observer.max_allocations_log_length()),
        (1.0, 5000)
    );

    let others: Vec<MemoryObserver> = (0..16).map(|_| tracking()).collect();
    assert_eq!(observer.set_tracking_allocation_sites(true), Err(ObserverError::NoRoom));
    drop(others);
    observer.set_tracking_allocation_sites(true).unwrap();
    assert!(observer.tracking_allocation_sites());
    // The longest log would take 64 GiB, and all logs together may take at most 4 GiB.
    for too_long in [i32::MAX as u64, 400 << 20, 130 << 20] {
        assert_eq!(observer.set_max_allocations_log_length(too_long), Err(ObserverError::NoRoom));
    }
    assert_eq!(observer.max_allocations_log_length(), 5000);
}

/// The bytes of logs are a row in the reports.
fn rows() {
    let bytes = || {
        let set = memory_reporter::collect_reports(&memory_reporter::CollectOptions::new());
        let row = set.iter().find(|report| report.path == "explicit/dmd/logs");
        row.expect("a row").amount
    };
    assert_eq!(bytes(), 0);
    let observer = tracking();
    let short = bytes();
    assert!(short >= 5000 * 32, "{short}");
    observer.set_max_allocations_log_length(105_000).unwrap();
    assert_eq!(bytes(), short + 100_000 * 32);
    drop(observer);
    assert_eq!(bytes(), 0);
}

fn entries() {
    let observer = tracking();
    let point = make_point();
    let bytes = make_bytes(7001);
    let text = "x".repeat(7002);
    let entries = observer.drain_allocations_log().unwrap();
    // DMD does not record the allocations of the drain.
    assert_eq!(observer.drain_allocations_log().unwrap(), []);
    assert!(entries.is_sorted_by(|a, b| a.timestamp <= b.timestamp));
    let [of_point] = of(&entries, size_of::<Point>() as u64)[..] else { panic!("{entries:?}") };
    let [of_bytes] = of(&entries, 7001)[..] else { panic!("{entries:?}") };
    let [of_text] = of(&entries, 7002)[..] else { panic!("{entries:?}") };
    assert!(of_point.timestamp <= of_bytes.timestamp && of_bytes.timestamp <= of_text.timestamp);
    assert!(of_point.timestamp > 0.0 && of_text.timestamp < 600_000.0, "{}", of_text.timestamp);
    assert_eq!(of_point.address, (&raw const *point).addr());
    assert_eq!(of_bytes.address, bytes.as_ptr().addr());
    assert!(of_bytes.size >= 7001 && of_bytes.size < 7100, "{}", of_bytes.size);
    assert!(!of_point.in_nursery);
    let functions = |entry: &AllocationsLogEntry| {
        let frames = entry.frame.as_ref().unwrap().frames();
        frames.iter().filter_map(|frame| frame.function.clone()).collect::<Vec<String>>()
    };
    if std::env::var_os("WITHOUT_SYMBOLS").is_none() {
        let class = |entry: &AllocationsLogEntry| entry.class.as_ref().map(|class| class.as_str().to_owned());
        assert_eq!(class(of_point).as_deref(), Some("watching::Point"));
        assert_eq!(class(of_bytes).as_deref(), Some("[u8]"));
        assert!(functions(of_point)[0].ends_with("make_point"), "{:?}", functions(of_point));
        assert!(functions(of_bytes).iter().any(|name| name.ends_with("watching::entries")));
        let frames = of_point.frame.as_ref().unwrap().frames();
        assert!(frames[0].line > 0 && frames[0].column > 0, "{frames:?}");
        let site = dmd::allocation_site(&raw const *point).unwrap();
        assert_eq!(Some(&site), of_point.frame.as_ref());
        assert!(site.to_string().lines().next().unwrap().contains("make_point ("), "{site}");
        // The address of a field is inside the block.
        assert_eq!(dmd::allocation_site(&raw const text.as_bytes()[100]), of_text.frame);
        let json: serde_json::Value = serde_json::from_str(&of_point.to_json()).unwrap();
        assert_eq!(json["class"], "watching::Point");
        assert_eq!(json["inNursery"], false);
        assert!(json["frame"][0]["functionDisplayName"].as_str().unwrap().ends_with("make_point"));
    }
    assert_eq!(dmd::allocation_site(&raw const observer), None, "on the stack");
    assert_eq!(observer.lost_allocations(), 0);
}

fn overflow() {
    let observer = tracking();
    observer.set_max_allocations_log_length(100).unwrap();
    observer.drain_allocations_log().unwrap();
    for count in 0..250 {
        churn(1, 8000 + count);
    }
    assert!(observer.allocations_log_overflowed());
    // Raising the limit keeps the flag.
    observer.set_max_allocations_log_length(1000).unwrap();
    assert!(observer.allocations_log_overflowed());
    let requested: Vec<u64> =
        observer.drain_allocations_log().unwrap().iter().map(|entry| entry.requested).collect();
    assert_eq!(requested, (8150..8250).collect::<Vec<u64>>());
    assert!(!observer.allocations_log_overflowed());

    // Lowering the limit drops the oldest entries and does not set the flag.
    churn(50, 9000);
    churn(10, 9001);
    observer.set_max_allocations_log_length(10).unwrap();
    assert!(!observer.allocations_log_overflowed());
    let entries = observer.drain_allocations_log().unwrap();
    assert_eq!((entries.len(), of(&entries, 9001).len()), (10, 10));

    // A log that is exactly full has lost no entry.
    drop(observer.drain_allocations_log());
    churn(10, 9002);
    assert!(!observer.allocations_log_overflowed());
    churn(1, 9002);
    assert!(observer.allocations_log_overflowed());

    // Switching tracking off empties the log.
    observer.set_tracking_allocation_sites(false).unwrap();
    churn(5, 9003);
    assert_eq!(observer.drain_allocations_log(), Err(ObserverError::NotTracking));
    observer.set_tracking_allocation_sites(true).unwrap();
    assert!(!observer.allocations_log_overflowed());
    churn(5, 9004);
    let entries = observer.drain_allocations_log().unwrap();
    assert_eq!((of(&entries, 9003).len(), of(&entries, 9004).len()), (0, 5));
}

/// Whether a count is within five standard deviations of the binomial distribution.
fn is_binomial(count: usize, of: usize, probability: f64) -> bool {
    let mean = of as f64 * probability;
    (count as f64 - mean).abs() <= 5.0 * (mean * (1.0 - probability)).sqrt()
}

fn shares() {
    const BLOCKS: usize = 20_000;
    let observers = [0.0, 0.01, 0.1, 0.5, 1.0].map(|share| {
        let observer = MemoryObserver::new();
        observer.set_allocation_sampling_probability(share).unwrap();
        observer.set_max_allocations_log_length(100_000).unwrap();
        (share, observer)
    });
    // The requested bytes identify each block.
    let sizes = 30_000..30_000 + BLOCKS;
    let run = || {
        observers.iter().for_each(|(_, observer)| observer.set_tracking_allocation_sites(true).unwrap());
        sizes.clone().for_each(|bytes| churn(1, bytes));
        let logs: Vec<Vec<AllocationsLogEntry>> =
            observers.iter().map(|(_, observer)| observer.drain_allocations_log().unwrap()).collect();
        observers.iter().for_each(|(_, observer)| observer.set_tracking_allocation_sites(false).unwrap());
        let requested = |log: Vec<AllocationsLogEntry>| -> Vec<u64> {
            log.iter()
                .map(|entry| entry.requested)
                .filter(|bytes| sizes.contains(&(*bytes as usize)))
                .collect()
        };
        logs.into_iter().map(requested).collect::<Vec<_>>()
    };
    let logs = run();
    for ((share, _), log) in observers.iter().zip(&logs) {
        assert!(is_binomial(log.len(), BLOCKS, *share), "{} of {BLOCKS} at {share}", log.len());
        assert!(log.is_sorted());
    }
    assert_eq!((logs[0].len(), logs[4].len()), (0, BLOCKS));
    // Each log is a part of the log with the next larger share.
    for pair in logs.windows(2) {
        assert!(pair[0].iter().all(|bytes| pair[1].binary_search(bytes).is_ok()));
    }
    // The draws have a fixed seed, so that a second run draws the same numbers.
    assert!(run() == logs);
}

fn two_limits() {
    let [all, few] = [1.0, 1.0].map(|_| tracking());
    few.set_max_allocations_log_length(3).unwrap();
    churn(10, 7004);
    assert!(few.allocations_log_overflowed() && !all.allocations_log_overflowed());
    assert_eq!(few.drain_allocations_log().unwrap().len(), 3);
    assert_eq!(of(&all.drain_allocations_log().unwrap(), 7004).len(), 10);
    drop(all);
    churn(2, 7005);
    assert_eq!(of(&few.drain_allocations_log().unwrap(), 7005).len(), 2);
}

fn threads() {
    const BLOCKS: usize = 10_000;
    let (all, half) = (tracking(), tracking());
    all.set_max_allocations_log_length(200_000).unwrap();
    half.set_max_allocations_log_length(200_000).unwrap();
    half.set_allocation_sampling_probability(0.5).unwrap();
    let threads: Vec<_> = (0..8).map(|thread| thread::spawn(move || churn(BLOCKS, 6000 + thread))).collect();
    // Another thread drains at the same time: no entry occurs twice, and no entry is lost.
    let mut log = Vec::new();
    while threads.iter().any(|thread| !thread.is_finished()) {
        log.extend(all.drain_allocations_log().unwrap());
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    log.extend(all.drain_allocations_log().unwrap());
    let half = half.drain_allocations_log().unwrap();
    for thread in 0..8 {
        assert_eq!(of(&log, 6000 + thread).len(), BLOCKS);
        let count = of(&half, 6000 + thread).len();
        assert!(is_binomial(count, BLOCKS, 0.5), "{count}");
    }
    // A short log keeps the newest entries of all threads.
    all.set_max_allocations_log_length(1000).unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || churn(BLOCKS, 6000 + thread));
        }
    });
    churn(900, 6100);
    let log = all.drain_allocations_log().unwrap();
    assert_eq!((log.len(), of(&log, 6100).len()), (1000, 900));
}

fn classes_and_nurseries() {
    let (point, line) = (ClassName::new("Point"), ClassName::new("Line"));
    let observer = tracking();
    // Blocks that follow each other at one address.
    for count in 0..20 {
        let block = make_bytes(5000);
        if count % 4 != 3 {
            let class = if count % 2 == 0 { &point } else { &line };
            // An address inside the block, like the address of an object after a header.
            dmd::describe_block(block[..].as_ptr().wrapping_add(16), class);
        }
    }
    let chunk = make_bytes(5001);
    let chunk_range = chunk.as_ptr()..chunk.as_ptr().wrapping_add(5001);
    let registration = dmd::register_nursery(chunk_range);
    let beside = make_bytes(5002);
    drop(registration);
    drop(chunk);
    let after = make_bytes(5001);
    let entries = observer.drain_allocations_log().unwrap();
    let classes: Vec<Option<&str>> = of(&entries, 5000)
        .into_iter()
        .map(|entry| entry.class.as_ref().map(ClassName::as_str).filter(|class| !class.contains("u8")))
        .collect();
    assert_eq!(classes, [Some("Point"), Some("Line"), Some("Point"), None].repeat(5));
    let nursery = |bytes| of(&entries, bytes).iter().map(|entry| entry.in_nursery).collect::<Vec<bool>>();
    assert_eq!(nursery(5001), [true, false], "the chunk is in the nursery, a later block is not");
    assert_eq!(nursery(5002), [false]);
    drop((beside, after));
}

fn collections() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    static LAST: AtomicU64 = AtomicU64::new(0);
    let observer = MemoryObserver::new();
    let cycle = || GarbageCollectionCycle::begin("heap", "API").end().gc_cycle_number;
    assert!(observer.on_garbage_collection().is_none());
    observer.set_max_allocations_log_length(4321).unwrap();
    observer.set_on_garbage_collection(Some(Arc::new(|owner, cycle| {
        // A handler may use the observer that owns it.
        assert_eq!(owner.max_allocations_log_length(), 4321);
        LAST.store(cycle.gc_cycle_number, Ordering::Relaxed);
    })));
    assert!(observer.on_garbage_collection().is_some());
    let number = cycle();
    assert_eq!(LAST.load(Ordering::Relaxed), number);
    observer.set_on_garbage_collection(Some(Arc::new(|_, _| panic!("the handler"))));
    assert_eq!(cycle(), number + 1, "a panic of a handler must not leave the handler");
    assert_eq!(LAST.load(Ordering::Relaxed), number);
    observer.set_uncaught_exception_handler(Some(Arc::new(|owner, panic| {
        assert_eq!((owner.max_allocations_log_length(), panic), (4321, "the handler"));
        LAST.store(u64::MAX, Ordering::Relaxed);
        owner.set_uncaught_exception_handler(None);
    })));
    cycle();
    assert_eq!(LAST.load(Ordering::Relaxed), u64::MAX, "the observer's panic handler must run");
    assert!(observer.uncaught_exception_handler().is_none());
    observer.set_on_garbage_collection(None);
    LAST.store(0, Ordering::Relaxed);
    cycle();
    observer.set_on_garbage_collection(Some(Arc::new(|_, cycle| {
        LAST.store(cycle.gc_cycle_number, Ordering::Relaxed);
    })));
    drop(observer);
    cycle();
    assert_eq!(LAST.load(Ordering::Relaxed), 0, "handlers end with their observer");
}

/// The child of a fork has its own logs.
#[cfg(target_os = "linux")]
fn forks() {
    let observer = tracking();
    churn(10, 4000);
    // SAFETY: the process has one thread, and the child only calls this library and ends.
    #[allow(unsafe_code, reason = "forks")]
    let child = unsafe { libc::fork() };
    if child == 0 {
        churn(10, 4001);
        let log = observer.drain_allocations_log().unwrap();
        let is_right = of(&log, 4001).len() == 10 && of(&log, 4000).len() <= 10;
        std::process::exit(i32::from(!is_right));
    }
    let mut status = 0;
    // SAFETY: the child was forked above, and `status` is a place for its status.
    #[allow(unsafe_code, reason = "waits for the child")]
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    let log = observer.drain_allocations_log().unwrap();
    assert_eq!((of(&log, 4000).len(), of(&log, 4001).len()), (10, 0));
}

fn main() {
    match std::env::args().nth(1).expect("a case").as_str() {
        "nothing" => nothing(),
        "sampled" => sampled(),
        "rows" => rows(),
        "settings" => settings(),
        "entries" => entries(),
        "overflow" => overflow(),
        "shares" => shares(),
        "two-limits" => two_limits(),
        "threads" => threads(),
        "classes" => classes_and_nurseries(),
        "collections" => collections(),
        "forks" => forks(),
        other => panic!("no case {other}"),
    }
}
