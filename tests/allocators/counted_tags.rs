//! Tags that count, and limits of their live bytes.

use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use allocators::Counting;
use memory_reporter::scopes::{Scope, ScopeError};
use memory_reporter::tags::{CountedTag, LimitCrossing, LimitRegistration, Tag, TagLimit, tag};
use memory_reporter::{CollectOptions, collect_reports};

memory_reporter::global_allocator!(Counting);

/// A callback that never comes fails the test after this time.
const LONG: Duration = Duration::from_secs(20);

fn buffer(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(bytes))
}

fn amount(path: &str) -> Option<i64> {
    let set = collect_reports(&CollectOptions::new());
    set.iter().find(|report| report.path == path).map(|report| report.amount)
}

#[test]
fn a_path_contains_the_paths_below_it_in_any_order_of_calls() {
    // This path has a tag before a path above it counts, and another one only afterwards.
    let early = Tag::new("explicit/order/early");
    let uncounted = early.run(|| buffer(10_000));
    let inner = CountedTag::new("explicit/order/early/inner").unwrap();
    let in_inner = inner.tag().run(|| buffer(7));
    let outer = CountedTag::new("explicit/order").unwrap();
    let other = CountedTag::new("explicit/orders").unwrap();
    let kept = [
        early.run(|| buffer(100)),
        inner.tag().run(|| buffer(20)),
        Tag::new("explicit/order/late/and/deep").run(|| buffer(3000)),
        other.tag().run(|| buffer(1)),
        outer.tag().run(|| buffer(40_000)),
    ];
    assert_eq!(outer.figures().retained_bytes, 43_120);
    assert_eq!(inner.figures().retained_bytes, 27);
    assert_eq!(other.figures().retained_bytes, 1);
    let again = CountedTag::new("explicit/order").unwrap();
    assert_eq!(again.figures(), outer.figures());
    // Blocks that were allocated before the path counted have no effect on it.
    drop((uncounted, in_inner));
    assert_eq!((outer.figures().retained_bytes, outer.figures().frees), (43_120, 0));
    assert_eq!(inner.figures().retained_bytes, 20);
    thread::spawn(move || drop(kept)).join().unwrap();
    assert_eq!((outer.figures().retained_bytes, outer.figures().peak_bytes), (0, 43_120));
    assert_eq!(inner.figures().frees, 2);
}

#[test]
fn rows_of_a_tag_that_counts_are_in_the_tree() {
    let counted = CountedTag::new("explicit/rows/query").unwrap();
    let kept = counted.tag().run(|| (buffer(4096), drop(buffer(4096))).0);
    let live = amount("explicit/rows/query").unwrap();
    assert!((4096..4200).contains(&live), "{live}");
    assert_eq!(amount("tag-peaks/rows/query"), Some(8192));
    assert_eq!(amount("tag-allocations/rows/query"), Some(2));
    drop(kept);
    assert_eq!(amount("explicit/rows/query"), None);
    assert_eq!(amount("tag-peaks/rows/query"), Some(8192));
}

#[test]
fn a_tag_inside_a_scope_counts_in_both() {
    let counted = CountedTag::new("explicit/inside").unwrap();
    let scope = Scope::named("around");
    let kept = scope.run(|| {
        let _tag = tag("explicit/inside/deeper");
        buffer(500)
    });
    assert_eq!((counted.figures().retained_bytes, scope.figures().unwrap().retained_bytes), (500, 500));
    drop(kept);
    assert_eq!((counted.figures().retained_bytes, scope.figures().unwrap().retained_bytes), (0, 0));
}

#[test]
fn threads_under_one_tag_leave_no_negative_figure() {
    let counted = CountedTag::new("explicit/many-threads").unwrap();
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                for size in 1..2000 {
                    let block = counted.tag().run(|| buffer(size));
                    drop(block);
                }
            });
        }
    });
    let figures = counted.figures();
    assert_eq!((figures.allocations, figures.frees), (8 * 1999, 8 * 1999));
    assert_eq!((figures.retained_bytes, figures.bytes), (0, 8 * 1999 * 2000 / 2));
    assert!((1999..8 * 2000).contains(&figures.peak_bytes), "{figures:?}");
}

#[test]
fn a_path_that_no_tag_can_have_does_not_count() {
    for (path, reason) in
        [("elsewhere", "must be under `explicit/`"), ("", "the path is empty"), ("explicit/a//b", "")]
    {
        let error = CountedTag::new(path).unwrap_err();
        assert!(
            matches!(&error, ScopeError::InvalidPath { path: named, why } if named == path && why.contains(reason)),
            "{error:?}"
        );
        assert!(error.to_string().starts_with(&format!("no tag can have the path `{path}`: ")), "{error}");
        assert_eq!(TagLimit::new(path).unwrap_err(), error);
    }
}

#[test]
fn figures_during_frees_on_another_thread_are_not_negative() {
    let counted = CountedTag::new("explicit/handed-over").unwrap();
    let (sender, receiver) = channel::<Vec<u8>>();
    let (crossings, _registration) = limit("explicit/handed-over", 1 << 30);
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| receiver.into_iter().for_each(drop));
        threads.spawn(|| {
            for _ in 0..50_000 {
                sender.send(counted.tag().run(|| buffer(1 << 16))).unwrap();
            }
            drop(sender);
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let figures = counted.figures();
            let largest = figures.retained_bytes.max(figures.retained_blocks);
            assert!(largest <= 50_000 << 16, "{figures:?}");
        }
    });
    assert_eq!(counted.figures().retained_bytes, 0);
    assert!(crossings.try_iter().all(|crossing| crossing.live_bytes <= 50_000 << 16));
}

fn limit(path: &str, bytes: u64) -> (Receiver<LimitCrossing>, LimitRegistration) {
    let (sender, receiver) = channel();
    let limit = TagLimit::new(path).expect("a tag");
    // The receiver may have ended.
    let send = move |crossing: &LimitCrossing| _ = sender.send(*crossing);
    (receiver, limit.at(bytes, send).expect("a thread"))
}

#[test]
fn a_limit_calls_once_for_each_crossing() {
    let (crossings, registration) = limit("explicit/limits/each", 1000);
    let tag = Tag::new("explicit/limits/each");
    let first = tag.run(|| buffer(1000));
    let second = tag.run(|| buffer(1));
    let crossing = crossings.recv_timeout(LONG).unwrap();
    assert_eq!((crossing.limit_bytes, crossing.live_bytes), (1000, 1001));
    drop(second);
    drop(first);
    // The limit becomes active again some time after the fall.
    let until = Instant::now() + LONG;
    let again = loop {
        drop(tag.run(|| buffer(5000)));
        match crossings.recv_timeout(Duration::from_millis(5)) {
            Ok(crossing) => break crossing,
            Err(_) => assert!(Instant::now() < until, "the limit is not active again"),
        }
    };
    assert_eq!(again.live_bytes, 5000);
    drop(registration);
    drop(tag.run(|| buffer(1 << 20)));
    // The callback ends with the registration, after the calls that wait.
    assert!(crossings.iter().all(|crossing| crossing.live_bytes == 5000));
}

#[test]
fn a_limit_below_the_present_amount_calls_at_once() {
    let counted = CountedTag::new("explicit/limits/present").unwrap();
    let kept = counted.tag().run(|| buffer(3000));
    let (crossings, _registration) = limit("explicit/limits/present", 0);
    assert_eq!(crossings.recv_timeout(LONG).unwrap().live_bytes, 3000);
    drop(kept);
}

#[test]
fn a_callback_may_block_panic_and_allocate_under_its_own_tag() {
    let (entered, is_entered) = channel();
    let (resume, resumed) = channel::<()>();
    let path = "explicit/limits/hostile";
    let limit = TagLimit::new(path).unwrap();
    let _blocks = limit
        .at(10, move |_| {
            entered.send(()).unwrap();
            let _ = resumed.recv();
            drop(Tag::new("explicit/limits/hostile").run(|| buffer(100_000)));
            resume_unwind(Box::new("on purpose"));
        })
        .unwrap();
    let (crossings, _registration) = self::limit(path, 1000);
    let small = limit.counted().tag().run(|| buffer(100));
    is_entered.recv_timeout(LONG).unwrap();
    // The first callback still runs.
    let large = limit.counted().tag().run(|| buffer(2000));
    assert_eq!(crossings.recv_timeout(LONG).unwrap().live_bytes, 2100);
    resume.send(()).unwrap();
    drop((small, large));
}
