//! `seconds=`: what the heap grew by.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use memory_endpoint::{Endpoint, Options};
use memory_export::Value;
use memory_reporter::{MemoryReporter, Reports};

use crate::program::{self, body, by_reporter, line, profile};

/// A reporter that allocates when it runs for the second time, which is for the second profile.
#[derive(Default)]
struct Growing {
    runs: AtomicUsize,
    blocks: Mutex<Vec<Box<[u8]>>>,
}

impl MemoryReporter for Growing {
    fn collect_reports(&self, _: &mut Reports) {
        if self.runs.fetch_add(1, Ordering::SeqCst) == 1 {
            let mut blocks = self.blocks.lock().unwrap();
            blocks.extend((0..1000).map(|_| vec![1; 3000].into_boxed_slice()));
        }
    }
}

#[test]
fn a_difference_is_the_growth() {
    let _alone = program::alone();
    let growing = Arc::new(Growing::default());
    let _registered = memory_reporter::register_strong(growing.clone());
    let endpoint = Arc::new(Endpoint::new());
    let asking = Arc::clone(&endpoint);
    let first = thread::spawn(move || asking.respond("/debug/pprof/allocs", "seconds=1", ""));
    while growing.runs.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    // The first one waits, or it has ended.
    let second = endpoint.respond("/debug/pprof/heap", "seconds=1", "");
    match second.status {
        429 => {
            assert_eq!(second.header("retry-after"), Some("1"));
            assert_eq!(line(&second), "another request waits for its second profile");
        }
        status => assert_eq!(status, 200),
    }
    let stacks = profile(&body(first.join().unwrap()));
    let blocks = stacks.index_of(Value::LiveBlocks).unwrap();
    let bytes = stacks.index_of(Value::LiveBytes).unwrap();
    let grown: Vec<_> = stacks
        .owned()
        .iter()
        .filter(|owned| owned.sums[blocks] == 1000)
        .map(|owned| owned.sums[bytes])
        .collect();
    assert_eq!(grown.len(), 1);
    assert!((3_000_000..3_100_000).contains(&grown[0]), "{grown:?}");
    // What did not change is not there.
    assert_eq!(by_reporter(&stacks).get("explicit/names"), None);
    let duration = stacks.facts().duration.unwrap();
    assert!(duration >= Duration::from_secs(1), "{duration:?}");
}

#[test]
fn others_are_answered_while_a_difference_waits() {
    let _alone = program::alone();
    let growing = Arc::new(Growing::default());
    let _registered = memory_reporter::register_strong(growing.clone());
    let endpoint = Endpoint::with_options(Options::new().deadline(Duration::from_secs(60)));
    thread::scope(|scope| {
        let difference = scope.spawn(|| endpoint.respond("/debug/pprof/heap", "seconds=1", ""));
        while growing.runs.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        // The turn is free once the first dump is written.
        while endpoint.respond("/metrics", "", "").status == 429 {
            thread::yield_now();
        }
        // The second profile waits for its turn if it has to.
        assert_eq!(difference.join().unwrap().status, 200);
    });
}
