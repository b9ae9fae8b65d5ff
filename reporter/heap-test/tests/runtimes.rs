//! Scopes across the threads of tokio and rayon: the figures do not depend on the thread that runs the code.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use memory_heap_test::{Scope, assert_heap};
use rayon::prelude::*;

memory_heap_test::global_allocator!(std::alloc::System);

fn buffer(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(bytes))
}

/// Tasks to wake. The list has room for all tasks, so it never allocates.
struct WakerQueue {
    wakers: Mutex<Vec<Waker>>,
    ready: Condvar,
}

impl WakerQueue {
    fn push(&self, waker: Waker) {
        self.wakers.lock().expect("unpoisoned").push(waker);
        self.ready.notify_one();
    }

    /// Wakes as many tasks as given.
    fn wake(&self, count: usize) {
        for _ in 0..count {
            let wakers = self.wakers.lock().expect("unpoisoned");
            let mut wakers = self.ready.wait_while(wakers, |wakers| wakers.is_empty()).expect("unpoisoned");
            let waker = wakers.pop().expect("the list is not empty");
            drop(wakers);
            waker.wake();
        }
    }
}

/// Waits until a thread outside of the runtime wakes the task, so that any worker may continue it.
struct Migrate<'a>(Option<&'a WakerQueue>);

impl Future for Migrate<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.0.take() {
            None => Poll::Ready(()),
            Some(queue) => {
                queue.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Allocates `rounds` blocks of known sizes. Every second block stays.
async fn work(number: usize, rounds: usize, queue: &WakerQueue, threads: &AtomicUsize) -> Vec<Vec<u8>> {
    let mut kept = Vec::with_capacity(rounds);
    let mut last = thread::current().id();
    for round in 0..rounds {
        let block = buffer(1 + number + round);
        Migrate(Some(queue)).await;
        if thread::current().id() != last {
            last = thread::current().id();
            threads.fetch_add(1, Ordering::Relaxed);
        }
        if round % 2 == 0 {
            kept.push(block);
        }
    }
    kept
}

#[test]
fn tasks_of_tokio_that_change_their_threads_have_exact_figures() {
    const TASKS: usize = 16;
    const ROUNDS: usize = 50;
    static MIGRATIONS: AtomicUsize = AtomicUsize::new(0);
    static QUEUE: WakerQueue = WakerQueue { wakers: Mutex::new(Vec::new()), ready: Condvar::new() };
    QUEUE.wakers.lock().expect("unpoisoned").reserve(TASKS);
    let waking = thread::spawn(|| QUEUE.wake(TASKS * ROUNDS));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(8).build().expect("a runtime");
    let scopes: Vec<Scope> = (0..TASKS).map(|task| Scope::named(format!("task {task}"))).collect();
    let kept = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for (task, scope) in scopes.iter().enumerate() {
            tasks.spawn(scope.future(work(task, ROUNDS, &QUEUE, &MIGRATIONS)));
        }
        tasks.join_all().await
    });
    assert!(MIGRATIONS.load(Ordering::Relaxed) > 0, "no task changed its thread");
    for (task, scope) in scopes.iter().enumerate() {
        let list = ROUNDS * size_of::<Vec<u8>>();
        let all: usize = (0..ROUNDS).map(|round| 1 + task + round).sum();
        let kept: usize = (0..ROUNDS).step_by(2).map(|round| 1 + task + round).sum();
        assert_heap!(
            scope,
            allocs == (1 + ROUNDS),
            reallocs == 0,
            frees == (ROUNDS / 2),
            bytes == (list + all)
        );
        assert_heap!(
            scope,
            retained_blocks == (1 + ROUNDS / 2),
            retained == (list + kept),
            net == (list + kept)
        );
    }
    waking.join().expect("the waking thread");
    drop(runtime);
    // This thread frees the blocks of all tasks.
    drop(kept);
    for scope in &scopes {
        assert_heap!(scope, retained == 0, retained_blocks == 0, net == 0);
    }
}

#[test]
fn jobs_of_rayon_are_in_the_scope_that_wraps_them() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().expect("a pool");
    let scope = Scope::named("jobs");
    let (sender, results) = channel();
    for job in 1..=100_usize {
        let sender = sender.clone();
        let work = scope.wrap(move || {
            drop(buffer(10 * job));
            buffer(job)
        });
        pool.spawn(move || sender.send(work()).expect("the test receives"));
    }
    drop(sender);
    let kept: Vec<_> = results.iter().collect();
    assert_heap!(scope, allocs == 200, frees == 100, bytes == (11 * 5050), retained == 5050);
    // Each element has a scope of its own, whichever thread computes it.
    let all: Vec<(usize, Scope, Vec<u8>)> = pool.install(|| {
        (1..=1000_usize)
            .into_par_iter()
            .map(|size| {
                let scope = Scope::named("element");
                let block = scope.run(|| (buffer(size), drop(buffer(2 * size))).0);
                (size, scope, block)
            })
            .collect()
    });
    for (size, scope, _) in &all {
        assert_heap!(scope, allocs == 2, peak == (3 * size), retained == (*size));
    }
    drop((kept, all));
    assert_heap!(scope, retained == 0);
}
