//! Spans as tags: each span has its own memory, on any thread.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use memory_reporter::scopes::HeapFigures;
use memory_reporter::tags::{CountedTag, Tag};
use memory_reporter::{CollectOptions, collect_reports};
use memory_reporter_tracing::SpanTags;
use tracing::subscriber::with_default;
use tracing::{Instrument, Subscriber, info_span};
use tracing_subscriber::prelude::*;

memory_reporter::global_allocator!(std::alloc::System);

fn buffer(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(bytes))
}

fn figures(path: &str) -> HeapFigures {
    CountedTag::new(path).expect("a tag").figures()
}

fn registry(layer: SpanTags) -> impl Subscriber + Send + Sync {
    tracing_subscriber::registry().with(layer)
}

#[test]
fn chosen_spans_have_tags_by_name_value_and_target() {
    let layer =
        SpanTags::new("explicit/chosen").span("request").span_with_value("query", "id").target("spans::db");
    let kept = with_default(registry(layer), || {
        let request = info_span!("request").in_scope(|| buffer(100));
        let query = info_span!("query", id = 17, other = 3).in_scope(|| buffer(2000));
        let text = info_span!("query", id = "a/b").in_scope(|| buffer(300));
        let without = info_span!("query").in_scope(|| buffer(40));
        let below = info_span!(target: "spans::db::index", "scan").in_scope(|| buffer(5));
        let none = info_span!("other").in_scope(|| (buffer(7), Tag::current()));
        let beside = info_span!(target: "spans::dbx", "scan").in_scope(Tag::current);
        assert_eq!((none.1, beside), (Tag::NONE, Tag::NONE));
        [request, query, text, without, below]
    });
    for (path, bytes) in
        [("request", 100), ("query/17", 2000), ("query/a\\b", 300), ("query", 2340), ("scan", 5)]
    {
        let figures = figures(&format!("explicit/chosen/{path}"));
        // `query` counts from its first span without a value on, so it may lack the values before.
        let expected = if path == "query" { [40, 2340] } else { [bytes, bytes] };
        assert!(expected.contains(&figures.retained_bytes), "{path}: {figures:?}");
    }
    drop(kept);
    assert_eq!(figures("explicit/chosen/request").retained_blocks, 0);
    assert_eq!(Tag::current(), Tag::NONE);
}

/// Waits once. Unlike tokio's `yield_now`, it allocates nothing.
struct YieldOnce(bool);

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Work with known figures: it allocates, waits, and returns a part.
async fn work(task: usize) -> Vec<Vec<u8>> {
    let mut kept = Vec::with_capacity(100);
    for i in 0..100 {
        let block = buffer(1 + task * 10 + i);
        // Another worker may continue the task.
        YieldOnce(false).await;
        if i % 2 == 0 {
            kept.push(block);
        }
    }
    kept
}

#[test]
fn tasks_on_eight_workers_have_the_figures_of_a_run_on_one_thread() {
    const TASKS: usize = 64;
    fn run(path: &str, workers: usize) -> Vec<HeapFigures> {
        let layer = SpanTags::new(path).span_with_value("task", "id");
        let subscriber = Arc::new(registry(layer));
        let dispatch = tracing::Dispatch::new(subscriber);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().expect("a runtime");
        let kept: Vec<_> = runtime.block_on(async {
            use tracing::instrument::WithSubscriber as _;
            let tasks: Vec<_> = (0..TASKS)
                .map(|id| {
                    let span = tracing::dispatcher::with_default(&dispatch, || info_span!("task", id));
                    tokio::spawn(work(id).instrument(span).with_subscriber(dispatch.clone()))
                })
                .collect();
            let mut kept = Vec::new();
            for task in tasks {
                kept.push(task.await.expect("the task"));
            }
            kept
        });
        let figures: Vec<_> = (0..TASKS).map(|id| figures(&format!("{path}/task/{id}"))).collect();
        drop(runtime);
        // This thread frees the blocks of all tasks.
        drop(kept);
        let after = (0..TASKS).map(|id| self::figures(&format!("{path}/task/{id}")));
        assert!(after.into_iter().all(|figures| figures.retained_blocks == 0 && figures.retained_bytes == 0));
        figures
    }
    let (alone, together) = (run("explicit/one-worker", 1), run("explicit/eight-workers", 8));
    for (id, (alone, together)) in alone.iter().zip(&together).enumerate() {
        let exact = |figures: &HeapFigures| {
            (figures.allocations, figures.frees, figures.bytes, figures.peak_bytes, figures.retained_bytes)
        };
        assert_eq!(exact(alone), exact(together), "{id}");
        assert_eq!(alone.allocations, 101, "{id}");
    }
}

#[test]
fn spans_nest_and_end_in_any_order() {
    let layer = SpanTags::new("explicit/order").span("outer").span("inner");
    with_default(registry(layer), || {
        let (outer, inner) = (info_span!("outer"), info_span!("inner"));
        let in_outer = outer.enter();
        let first = buffer(1);
        let in_inner = inner.enter();
        let second = buffer(20);
        drop(in_outer);
        let third = buffer(300);
        drop(in_inner);
        let fourth = buffer(4000);
        // A span entered again, and on two threads at once.
        let again = outer.in_scope(|| outer.in_scope(|| buffer(50_000)));
        let dispatch = tracing::dispatcher::get_default(tracing::Dispatch::clone);
        let run = || tracing::dispatcher::with_default(&dispatch, || inner.in_scope(|| buffer(600_000)));
        let held: Vec<_> = thread::scope(|threads| {
            let running = [threads.spawn(run), threads.spawn(run)];
            running.into_iter().map(|thread| thread.join().expect("the thread")).collect()
        });
        assert_eq!(figures("explicit/order/outer").retained_bytes, 50_001);
        assert_eq!(figures("explicit/order/inner").retained_bytes, 1_200_320);
        drop((first, second, third, fourth, again, held));
    });
    for path in ["explicit/order/outer", "explicit/order/inner"] {
        assert_eq!((figures(path).retained_bytes, figures(path).retained_blocks), (0, 0));
    }
}

#[test]
fn a_span_that_is_never_closed_or_of_another_subscriber_harms_nothing() {
    let subscribers =
        ["explicit/first", "explicit/second"].map(|path| registry(SpanTags::new(path).span("leaked")));
    let [first, second] = subscribers.map(tracing::Dispatch::new);
    let span = tracing::dispatcher::with_default(&first, || info_span!("leaked"));
    // The span belongs to the first subscriber, whatever the default is.
    let block = tracing::dispatcher::with_default(&second, || {
        let own = info_span!("leaked");
        own.in_scope(|| span.in_scope(|| buffer(4096)))
    });
    assert_eq!(figures("explicit/first/leaked").retained_bytes, 4096);
    // `tracing` allocates a few small lists for the inner span.
    assert!(figures("explicit/second/leaked").retained_bytes < 4096);
    #[allow(clippy::mem_forget, reason = "the span is never closed")]
    std::mem::forget(span.entered());
    drop(block);
    // The span is still open on this thread: its tag stays current, and other guards override it.
    assert_ne!(Tag::current(), Tag::NONE);
    assert_eq!(Tag::NONE.run(Tag::current), Tag::NONE);
}

#[test]
fn millions_of_values_are_bounded() {
    let layer = SpanTags::new("explicit/bounded").span_with_value("query", "id").at_most(10);
    let subscriber = registry(layer);
    let kept = with_default(subscriber, || {
        for id in 0..100_000_u64 {
            info_span!("query", id).in_scope(|| drop(buffer(8)));
        }
        info_span!("query", id = 100_000).in_scope(|| buffer(1024))
    });
    let other = figures("explicit/bounded/query/(other)");
    assert_eq!((other.allocations, other.retained_bytes), (99_991, 1024));
    let reports = collect_reports(&CollectOptions::new());
    let paths: Vec<&str> =
        reports.iter().map(|report| report.path).filter(|path| path.contains("/bounded/")).collect();
    // One row of live bytes, and two rows for each of 11 paths.
    assert_eq!(paths.len(), 1 + 2 * 11, "{paths:?}");
    drop(kept);
}
