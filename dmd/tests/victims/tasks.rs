//! Keeps blocks of known sizes in async functions of known names, and then writes a dump. A test compiles this program
//! in several ways, always under the name `compiled`. Usage, with `DMD`: `compiled FILE`.

use std::alloc::System;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

struct Store;

impl Store {
    async fn first(&self) -> Vec<u8> {
        std::future::ready(()).await;
        Vec::with_capacity(600_001)
    }
}

async fn second() -> Vec<u8> {
    black_box(std::future::ready(())).await;
    Vec::with_capacity(700_001)
}

async fn both() -> [Vec<u8>; 2] {
    [Store.first().await, second().await]
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    let mut task = pin!(both());
    let lists = match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(lists) => lists,
        Poll::Pending => unreachable!("it waits for nothing"),
    };
    let closure = [800_001].map(|bytes| black_box(Vec::<u8>::with_capacity(bytes)));
    dmd::dump(file).expect("a dump");
    black_box((lists, closure));
}
