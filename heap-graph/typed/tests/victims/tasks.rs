//! Futures that wait at known positions. The program polls them once, without an executor. Usage:
//! `DMD=--mode=scan typed_heap_tasks DUMP`. It writes the dump and prints a line, and ends when its standard input
//! ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::future::{Future, pending};
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

type Task = Pin<Box<dyn Future<Output = usize>>>;

struct Letter(Vec<u64>);

impl Letter {
    async fn receive(&self) -> usize {
        pending::<()>().await; // FIRST
        self.0.len()
    }
}

async fn serve(number: usize) -> usize {
    // 64 numbers that only the task keeps alive.
    let letter = Letter(vec![number as u64; 64]);
    let mut sum = 0;
    if number.is_multiple_of(3) {
        sum += letter.receive().await; // SECOND
    }
    pending::<()>().await; // THIRD
    sum + letter.0.len()
}

/// Waits and shares the ownership of a letter.
async fn share(letter: Arc<Letter>) -> usize {
    pending::<()>().await; // FIFTH
    letter.0.len()
}

async fn outer(inner: Task) -> usize {
    inner.await // FOURTH
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    // 10 of 30 wait for a letter, and 20 are at their second `await`.
    let mut tasks: Vec<Task> = (0..30).map(|number| Box::pin(serve(number)) as Task).collect();
    // Five futures, each awaiting a future at its second `await`, behind a pointer.
    tasks.extend((1..6).map(|_| Box::pin(outer(Box::pin(serve(1)))) as Task));
    // Three futures that together keep one letter of 1,000 numbers alive. No single future keeps it alive.
    let letter = Arc::new(Letter(vec![1; 1_000]));
    tasks.extend((0..3).map(|_| Box::pin(share(Arc::clone(&letter))) as Task));
    drop(letter);
    let mut context = Context::from_waker(Waker::noop());
    for task in &mut tasks {
        assert!(task.as_mut().poll(&mut context).is_pending());
    }
    // Four futures that were never polled.
    tasks.extend((0..4).map(|number| Box::pin(serve(number)) as Task));
    // One finished future.
    let number = tasks.len();
    let mut done: Task = Box::pin(async move { number });
    assert!(done.as_mut().poll(&mut context).is_ready());
    tasks.push(done);
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    println!("{}", tasks.len());
}
