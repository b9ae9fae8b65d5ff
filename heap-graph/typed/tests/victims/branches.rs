//! Futures that await several other futures at once. The program polls them once, without an executor. Usage:
//! `DMD=--mode=scan typed_heap_branches DUMP`. It writes the dump and prints a line, and ends when its standard input
//! ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::future::{Future, pending, ready};
use std::io::Read as _;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures_util::future::{Shared, join, join_all};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

type Task = Pin<Box<dyn Future<Output = usize>>>;

/// A value with its own block.
struct Letter(Vec<u64>);

async fn receive(number: usize) -> usize {
    let letter = Letter(vec![1; 10 + number]);
    pending::<()>().await; // RECEIVE
    letter.0.len()
}

async fn wait() -> usize {
    let numbers = [1; 3];
    pending::<()>().await; // WAIT
    numbers.len()
}

/// A future that is not a coroutine, and never finishes.
struct Never {
    tries: u64,
}

impl Future for Never {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
        self.tries += 1;
        Poll::Pending
    }
}

/// Two of three futures wait, and one is finished.
async fn joins(number: usize) -> usize {
    let (one, other, last) = tokio::join!(receive(number), wait(), ready(1));
    one + other + last
}

/// One future is not a coroutine, and another is in its own block behind a reference.
async fn selects(mut task: Task) -> usize {
    let mut never = pin!(Never { tries: 0 });
    tokio::select! {
        number = receive(5) => number,
        number = &mut task => number,
        number = &mut never => number,
    }
}

/// All futures except one are finished.
async fn almost() -> usize {
    let (one, other) = tokio::join!(ready(2), wait());
    one + other
}

async fn pair() -> usize {
    let (one, other) = join(receive(2), wait()).await; // PAIR
    one + other
}

/// The first future is finished, and the second joins others.
async fn nested() -> usize {
    let inner = async { tokio::join!(wait(), receive(4)).1 };
    let (one, other) = tokio::join!(receive(3), inner);
    one + other
}

async fn all() -> usize {
    join_all((0..5).map(receive)).await.len() // ALL
}

async fn boxed() -> usize {
    let tasks = (0..4).map(|number| if number < 3 { Box::pin(wait()) as Task } else { Box::pin(ready(7)) });
    join_all(tasks).await.len() // BOXED
}

async fn unordered() -> usize {
    let mut tasks: FuturesUnordered<_> = (0..7).map(receive).collect();
    let mut sum = 0;
    loop {
        let Some(number) = tasks.next().await else { return sum }; // UNORDERED
        sum += number;
    }
}

/// Waits for a future for which other tasks also wait.
async fn shares<F: Future<Output = usize>>(common: Shared<F>) -> usize {
    common.await // SHARES
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let mut tasks: Vec<Task> = Vec::new();
    tasks.extend((0..6).map(|number| Box::pin(joins(number)) as Task));
    tasks.extend((0..4).map(|_| Box::pin(selects(Box::pin(wait()))) as Task));
    tasks.extend((0..2).map(|_| Box::pin(almost()) as Task));
    tasks.extend((0..3).map(|_| Box::pin(pair()) as Task));
    tasks.extend((0..2).map(|_| Box::pin(nested()) as Task));
    tasks.extend((0..2).map(|_| Box::pin(all()) as Task));
    tasks.extend((0..2).map(|_| Box::pin(boxed()) as Task));
    tasks.push(Box::pin(unordered()));
    let boxed = (Box::pin(wait()) as Task).shared();
    tasks.extend((0..2).map(|_| Box::pin(shares(boxed.clone())) as Task));
    let inside = receive(6).shared();
    tasks.extend((0..3).map(|_| Box::pin(shares(inside.clone())) as Task));
    let mut context = Context::from_waker(Waker::noop());
    for task in &mut tasks {
        assert!(task.as_mut().poll(&mut context).is_pending());
    }
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    println!("{}", tasks.len());
}
