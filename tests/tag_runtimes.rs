//! Tags across the threads of rayon and of tokio.

use std::time::Duration;

use memory_reporter::{
    CollectOptions, collect_reports, malloc_size_of, tag,
    tags::{Tag, TaggedFuture},
};
use rayon::prelude::*;

fn amount(path: &str) -> usize {
    let set = collect_reports(&CollectOptions::new());
    set.iter().filter(|report| report.path == path).map(|report| report.amount as usize).sum()
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// The bytes of the values without their list, since another thread may have allocated the list.
fn bytes(values: &[String]) -> usize {
    values.iter().map(malloc_size_of).sum()
}

#[test]
fn one_line_gives_the_threads_of_a_rayon_pool_a_tag() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(4)
        .start_handler(|_| Tag::new("explicit/rayon/pool").keep())
        .build()
        .unwrap();
    let values: Vec<String> = pool.install(|| (0..10_000).into_par_iter().map(|i| text(i % 300)).collect());
    let in_pool = amount("explicit/rayon/pool");
    // The pool's own memory is small. Any part of the list's memory may have the tag.
    let least = bytes(&values);
    assert!((least..least + malloc_size_of(&values)).contains(&in_pool), "{in_pool} of at least {least}");
    drop(values);
    assert!(amount("explicit/rayon/pool") < 200_000, "{}", amount("explicit/rayon/pool"));
}

#[test]
fn a_job_of_rayon_inherits_a_tag_where_asked() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let guard = tag("explicit/rayon/jobs");
    let job = Tag::current().wrap(move || sender.send((text(1000), Tag::current())).unwrap());
    drop(guard);
    pool.spawn(job);
    let (value, inherited) = receiver.recv().unwrap();
    assert_eq!(inherited, Tag::new("explicit/rayon/jobs"));
    assert_eq!(pool.install(Tag::current), Tag::NONE);
    let in_jobs = amount("explicit/rayon/jobs");
    let least = malloc_size_of(&value);
    assert!((least..least + 2000).contains(&in_jobs), "{in_jobs} of at least {least}");
}

#[test]
fn tasks_of_tokio_keep_their_tags_on_every_thread() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let kept: Vec<Vec<String>> = runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|i| {
                let task = async move {
                    let mut values = Vec::with_capacity(50);
                    for round in 0..50 {
                        values.push(text(round * 7));
                        // The task may continue on another thread.
                        tokio::time::sleep(Duration::from_micros(50)).await;
                        assert_eq!(Tag::current(), Tag::new(format!("explicit/tokio/{i}")));
                    }
                    values
                };
                let _tag = tag(format!("explicit/tokio/{i}"));
                tokio::spawn(TaggedFuture::new(task))
            })
            .collect();
        let mut kept = Vec::new();
        for task in tasks {
            assert_eq!(Tag::current(), Tag::NONE);
            kept.push(task.await.unwrap());
        }
        kept
    });
    for (i, values) in kept.iter().enumerate() {
        let (held, exact) = (amount(&format!("explicit/tokio/{i}")), malloc_size_of(values));
        // `tokio::spawn` itself allocates the task while the tag is set.
        assert!((exact..exact + 4000).contains(&held), "{held} of at least {exact}");
    }
}
