//! A service whose call stacks DMD can record while the service runs. DMD waits until `about-memory track`, or the page
//! of `about-memory serve`, requests a recording. Start the service with `ABOUT_MEMORY=listen`; Ctrl-C ends it.

#![allow(clippy::print_stdout, reason = "prints that it is ready")]

use std::alloc::System;
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: dmd::Dmd<System> = dmd::Dmd::on_request(System);

/// The maximum number of sessions that the service keeps.
const KEPT: usize = 200;

/// The data that one client has sent.
struct Session {
    name: String,
    body: Vec<u8>,
}

fn open_session(number: usize) -> Session {
    Session { name: format!("client {number}"), body: vec![1; 1000 + number % 500] }
}

fn main() {
    let mut sessions = VecDeque::new();
    println!("process {} waits for about-memory track", std::process::id());
    for number in 0.. {
        sessions.push_back(open_session(number));
        if sessions.len() > KEPT
            && let Some(oldest) = sessions.pop_front()
        {
            assert!(oldest.body.len() >= 1000, "{}", oldest.name);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
