//! Tasks with the layout of the crate async-task, which async-executor and smol use: a header, the schedule function,
//! and the future follow each other in one block.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use async_task::raw::RawTask;

struct Never;

impl Future for Never {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

async fn small(number: u64) -> u64 {
    let list = vec![number; 10];
    truth::is("locals of tasks", list.as_ptr(), "[u64]");
    Never.await;
    list.len() as u64
}

pub struct World {
    pub tasks: Vec<NonNull<()>>,
}

// SAFETY: the pointers are never followed.
unsafe impl Send for World {}

pub static WORLD: Mutex<Option<Box<World>>> = Mutex::new(None);

fn spawn<F: Future<Output = u64>>(future: F, is_polled: bool) -> NonNull<()> {
    let mut context = Context::from_waker(Waker::noop());
    let task = RawTask::<F, u64, u16, u8>::allocate(future, 7, 1);
    if is_polled {
        RawTask::<F, u64, u16, u8>::poll(task, &mut context);
    }
    truth::is("tasks", task.as_ptr(), "*RawTask<executor::small::{async_fn#0}, u64, u16, u8>");
    task
}

fn main() {
    truth::open();
    let mut tasks: Vec<_> = (0..10).map(|number| spawn(small(number), true)).collect();
    // These tasks are cancelled, so their contents are stale.
    tasks.extend((0..3).map(|number| {
        let task = spawn(small(number), true);
        RawTask::<(), u64, u16, u8>::close(task);
        task
    }));
    *WORLD.lock().expect("no panic") = Some(Box::new(World { tasks }));
    truth::wait();
    std::process::exit(WORLD.lock().expect("no panic").as_ref().expect("set").tasks.len() as i32 - 13);
}
