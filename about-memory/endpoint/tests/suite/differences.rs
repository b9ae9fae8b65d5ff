//! `seconds=`: the growth of the heap.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use memory_endpoint::{Endpoint, EndpointOptions, GetRequest};
use memory_export::ProfileValue;
use memory_reporter::{MemoryReporter, Reports};

use crate::program::{self, body, by_reporter, line, profile};

/// A reporter that allocates in its second run, which is for the second profile.
#[derive(Default)]
pub(crate) struct Growing {
    pub(crate) runs: AtomicUsize,
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
    // The first request is waiting, or has ended.
    let second = endpoint.respond("/debug/pprof/heap", "seconds=1", "");
    match second.status {
        429 => {
            assert_eq!(second.header("retry-after"), Some("1"));
            assert_eq!(line(&second), "another request waits for its second profile");
        }
        status => assert_eq!(status, 200),
    }
    let stacks = profile(&body(first.join().unwrap()));
    let blocks = stacks.index_of(ProfileValue::LiveBlocks).unwrap();
    let bytes = stacks.index_of(ProfileValue::LiveBytes).unwrap();
    let grown: Vec<_> = stacks
        .owned()
        .iter()
        .filter(|owned| owned.sums[blocks] == 1000)
        .map(|owned| owned.sums[bytes])
        .collect();
    assert_eq!(grown.len(), 1);
    assert!((3_000_000..3_100_000).contains(&grown[0]), "{grown:?}");
    // Unchanged blocks are left out.
    assert_eq!(by_reporter(&stacks).get("explicit/names"), None);
    let duration = stacks.facts().duration.unwrap();
    assert!(duration >= Duration::from_secs(1), "{duration:?}");
}

#[test]
fn others_are_answered_while_a_difference_waits() {
    let _alone = program::alone();
    let growing = Arc::new(Growing::default());
    let _registered = memory_reporter::register_strong(growing.clone());
    let endpoint = Endpoint::with_options(EndpointOptions::new().deadline(Duration::from_secs(60)));
    thread::scope(|scope| {
        let difference = scope.spawn(|| endpoint.respond("/debug/pprof/heap", "seconds=1", ""));
        while growing.runs.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        // The turn is free after the first dump is written.
        while endpoint.respond("/metrics", "", "").status == 429 {
            thread::yield_now();
        }
        // If necessary, the second profile waits for its turn.
        assert_eq!(difference.join().unwrap().status, 200);
    });
}

/// If a client disconnects while its difference waits for the second dump, other clients can request a difference
/// again. Until then, `Retry-After` of a refused request contains the remaining seconds of the waiting difference.
#[test]
fn an_abandoned_difference_ends() {
    let _alone = program::alone();
    let growing = Arc::new(Growing::default());
    let _registered = memory_reporter::register_strong(growing.clone());
    let endpoint = Endpoint::new();
    let waits = AtomicBool::new(true);
    let is_wanted = || waits.load(Ordering::SeqCst);
    thread::scope(|scope| {
        let request = || {
            let asked = GetRequest::new("/debug/pprof/heap", "seconds=300").wanted(&is_wanted);
            endpoint.answer(&asked).status
        };
        let abandoned = scope.spawn(request);
        // Waits until the request has started its first dump. From then on the request holds the turn.
        while growing.runs.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        let other = endpoint.respond("/debug/pprof/heap", "seconds=1", "");
        let left: u64 = other.header("retry-after").unwrap().parse().unwrap();
        assert!((200..=300).contains(&left), "{left}");
        thread::sleep(Duration::from_millis(1100));
        let later = endpoint.respond("/debug/pprof/heap", "seconds=1", "");
        let later: u64 = later.header("retry-after").unwrap().parse().unwrap();
        assert!(later < left, "{later} of {left} seconds are left");
        waits.store(false, Ordering::SeqCst);
        assert_eq!(abandoned.join().unwrap(), 503);
    });
    assert_eq!(endpoint.respond("/debug/pprof/heap", "seconds=1", "").status, 200);
}
