//! One request at a time, deadlines, and limits of sizes.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use memory_endpoint::{Endpoint, EndpointOptions, EndpointResponse};

use crate::program::{self, body, line};

/// An endpoint whose snapshot sends a signal when it starts, and then waits for a signal to end.
fn waiting(options: EndpointOptions) -> (Arc<Endpoint>, Receiver<()>, Sender<()>) {
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let (begun, may_end) = (Mutex::new(begun), Mutex::new(may_end));
    let endpoint = Endpoint::with_options(options).snapshot(move |file| {
        begun.lock().unwrap().send(()).unwrap();
        may_end.lock().unwrap().recv().unwrap();
        file.write_all(b"done")
    });
    (Arc::new(endpoint), has_begun, end)
}

/// Repeats a request until no other request is running.
fn once_it_is_free(endpoint: &Endpoint) -> EndpointResponse {
    loop {
        let response = endpoint.respond("/metrics", "", "");
        if response.status != 429 {
            return response;
        }
        thread::yield_now();
    }
}

#[test]
fn one_request_is_at_work_in_the_process() {
    let _alone = program::alone();
    let (endpoint, has_begun, end) = waiting(EndpointOptions::new());
    let asking = Arc::clone(&endpoint);
    let first = thread::spawn(move || asking.respond("/memory/snapshot", "", ""));
    has_begun.recv().unwrap();
    for other in [&*endpoint, &Endpoint::new()] {
        for path in ["/metrics", "/debug/pprof/heap", "/memory/report"] {
            let refused = other.respond(path, "", "");
            assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{path}");
            assert_eq!(line(&refused), "another request is running; the endpoint answers one at a time");
        }
    }
    // Requests with errors need no turn.
    assert_eq!(endpoint.respond("/no", "", "").status, 404);
    assert_eq!(endpoint.respond("/metrics", "no", "").status, 400);
    end.send(()).unwrap();
    assert_eq!(body(first.join().unwrap()), b"done");
    // A client may send its next request as soon as it has its answer.
    assert_eq!(endpoint.respond("/metrics", "", "").status, 200);
}

#[test]
fn a_late_answer_keeps_its_turn() {
    let _alone = program::alone();
    let (endpoint, has_begun, end) = waiting(EndpointOptions::new().deadline(Duration::from_millis(20)));
    let late = endpoint.respond("/memory/snapshot", "", "");
    assert_eq!((late.status, late.header("retry-after")), (503, Some("1")));
    assert_eq!(line(&late), "no answer within 20ms, the limit of the endpoint (deadline)");
    has_begun.recv().unwrap();
    assert_eq!(Endpoint::new().respond("/metrics", "", "").status, 429);
    end.send(()).unwrap();
    assert_eq!(once_it_is_free(&Endpoint::new()).status, 200);
}

#[test]
fn a_deadline_may_be_any_time() {
    let _alone = program::alone();
    let endless = Endpoint::with_options(EndpointOptions::new().deadline(Duration::MAX));
    assert_eq!(endless.respond("/metrics", "", "").status, 200);
    let none = Endpoint::with_options(EndpointOptions::new().deadline(Duration::ZERO)).snapshot(|_| Ok(()));
    // The work may have ended before the deadline was checked.
    assert!([200, 503].contains(&none.respond("/memory/snapshot", "", "").status));
    assert_eq!(once_it_is_free(&Endpoint::new()).status, 200);
}

#[test]
fn a_panic_of_the_program_is_an_error() {
    let _alone = program::alone();
    let endpoint = Endpoint::new().snapshot(|_| panic!("on purpose"));
    let response = endpoint.respond("/memory/snapshot", "", "");
    assert_eq!((response.status, line(&response)), (500, "a part of the program panicked while it answered"));
    assert_eq!(endpoint.respond("/metrics", "", "").status, 200);
    let endpoint = Endpoint::new().snapshot(|_| Err(std::io::Error::other("two\nlines")));
    let response = endpoint.respond("/memory/snapshot", "", "");
    assert_eq!((response.status, line(&response)), (503, "the snapshot cannot be made: two lines"));
}

#[test]
fn bodies_are_bounded() {
    let _alone = program::alone();
    let endless = |file: &mut dyn std::io::Write| loop {
        file.write_all(&[0; 1000])?;
    };
    let endpoint = Endpoint::with_options(EndpointOptions::new().max_bytes(1500)).snapshot(endless);
    for (path, what) in [
        ("/metrics", "the text of all metrics"),
        ("/memory/report", "the report"),
        ("/memory/snapshot", "the snapshot"),
        ("/debug/pprof/heap", "the profile"),
    ] {
        let response = endpoint.respond(path, "", "");
        let message = format!("{what} has more than 1500 bytes, the limit of the endpoint (max_bytes)");
        assert_eq!((response.status, line(&response)), (503, &*message));
    }
    let exact =
        Endpoint::with_options(EndpointOptions::new().max_bytes(3)).snapshot(|file| file.write_all(b"abc"));
    assert_eq!(body(exact.respond("/memory/snapshot", "", "")), b"abc");
}

#[test]
fn dumps_are_bounded() {
    let _alone = program::alone();
    let endpoint = Endpoint::with_options(EndpointOptions::new().max_dump_bytes(1000));
    let response = endpoint.respond("/debug/pprof/heap", "", "");
    assert_eq!(response.status, 503);
    assert!(line(&response).starts_with("the dump of DMD cannot be used: "), "{}", line(&response));
}

#[test]
fn series_are_bounded() {
    let _alone = program::alone();
    let series = |most: usize| {
        let endpoint = Endpoint::with_options(EndpointOptions::new().max_series(most));
        let text = String::from_utf8(body(endpoint.respond("/metrics", "", ""))).unwrap();
        text.lines().filter(|line| line.contains("path=\"")).count()
    };
    assert!(series(12) < series(500));
}
