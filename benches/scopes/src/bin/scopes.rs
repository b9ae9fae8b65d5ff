//! Scopes of memory-reporter, and spans as tags.

use std::hint::black_box;
use std::thread;

use memory_reporter::scopes::Scope;
use memory_reporter::tags::Tag;
use memory_reporter_tracing::SpanTags;
use scope_benches::{bench, bench_call};
use tracing_subscriber::prelude::*;

memory_reporter::global_allocator!(std::alloc::System);

fn main() {
    bench("declared, before the first tag", |work| work());
    let scope = Scope::named("bench");
    scope.run(|| drop(black_box(vec![1_u8; 100])));
    bench("declared, outside of scopes", |work| work());
    bench("under a tag", |work| Tag::new("explicit/bench").run(&mut *work));
    bench("in a scope", |work| scope.run(&mut *work));
    let outer = Scope::named("outer");
    bench("in two nested scopes", |work| outer.run(|| scope.run(&mut *work)));
    // A second thread is in the scope at the same time.
    let shared = Scope::named("shared");
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let (entered, is_entered) = std::sync::mpsc::channel();
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.run(|| {
            entered.send(()).expect("a receiver");
            let _ = wait.recv();
        });
    });
    is_entered.recv().expect("a sender");
    bench("in a scope that two threads share", |work| shared.run(&mut *work));
    drop(end);
    thread.join().expect("the thread");
    bench_call("enter and exit a scope", || drop(black_box(scope.enter())));
    let span = |dispatch: &tracing::Dispatch| {
        tracing::dispatcher::with_default(dispatch, || tracing::info_span!("request"))
    };
    let plain = span(&tracing::Dispatch::new(tracing_subscriber::registry()));
    bench_call("enter and exit a span, registry alone", || plain.in_scope(|| black_box(())));
    let layer = SpanTags::new("explicit/spans").span("request");
    let tagged = span(&tracing::Dispatch::new(tracing_subscriber::registry().with(layer)));
    bench_call("enter and exit a span with a tag", || tagged.in_scope(|| black_box(())));
}
