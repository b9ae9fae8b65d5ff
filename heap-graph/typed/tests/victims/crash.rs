//! A program that aborts with known contents of its heap. A test compiles it without DMD.

use std::process::abort;
use std::sync::{Mutex, mpsc};
use std::thread;

#[allow(dead_code, reason = "they take room")]
struct User {
    name: String,
    roles: Vec<Role>,
}

#[derive(Clone)]
#[allow(dead_code, reason = "it takes room")]
struct Role(u32);

#[allow(dead_code, reason = "it takes room")]
struct Order(u64);

static USERS: Mutex<Vec<User>> = Mutex::new(Vec::new());

/// Has orders on its stack, and waits.
#[inline(never)]
fn work(ready: &mpsc::Sender<()>, ends: &mpsc::Receiver<()>) -> usize {
    let orders: Vec<Order> = (0..6).map(Order).collect();
    ready.send(()).expect("the main thread waits");
    let _ = ends.recv();
    orders.len()
}

fn main() {
    let user = |number: u32| User { name: format!("user {number}"), roles: vec![Role(number); 5] };
    USERS.lock().expect("nobody panics").extend((0..10).map(user));
    let (ready, is_ready) = mpsc::channel();
    let (_ends, ended) = mpsc::channel();
    thread::spawn(move || work(&ready, &ended));
    is_ready.recv().expect("the thread is ready");
    abort();
}
