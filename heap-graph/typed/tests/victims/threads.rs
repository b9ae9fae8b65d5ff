//! A thread with thread-locals, and threads with values on their stacks. Usage:
//! `DMD=--mode=scan typed_heap_threads DUMP`. The program writes the dump, writes the register of the thread to
//! `DUMP.thread`, and prints a line. It ends when its standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() {
    linux::main();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux {
    use std::alloc::System;
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::io::Read as _;
    use std::os::unix::thread::JoinHandleExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, mpsc};
    use std::thread;

    #[global_allocator]
    static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

    #[derive(Clone)]
    struct Item(u64);

    #[derive(Clone)]
    struct Other(u64);

    thread_local! {
        static EAGER: RefCell<Vec<Item>> = const { RefCell::new(Vec::new()) };
        static LAZY: RefCell<Vec<Other>> = RefCell::new(vec![Other(1); 7]);
    }

    #[derive(Clone)]
    struct Waiting(u64);

    struct Running(u64);

    /// A closure owns these values, and a frame of std has the closure.
    #[derive(Clone)]
    struct Captured(u64);

    struct Boxed {
        data: Box<[u16; 100]>,
    }

    static ARENA: Mutex<Option<bumpalo::Bump>> = Mutex::new(None);

    /// A value in a chunk of the leaked arena. The arena's box holds the chunk; this static does not.
    static INSIDE: Mutex<Option<&'static Value>> = Mutex::new(None);

    struct Value {
        _numbers: [u64; 120],
        _next: Option<&'static Value>,
    }

    static ENDS: AtomicBool = AtomicBool::new(false);

    /// Has a vector on its stack, and waits.
    #[inline(never)]
    fn wait(ready: &mpsc::Sender<()>, ends: &mpsc::Receiver<()>) -> u64 {
        let values = vec![Waiting(4); 6];
        // Only this stack contains the length of the vector.
        let boxed: Vec<Boxed> = (0..3)
            .map(|_| Boxed { data: vec![1; 100].into_boxed_slice().try_into().expect("a hundred") })
            .collect();
        ready.send(()).expect("the main thread waits");
        let _ = ends.recv();
        values.iter().map(|value| value.0).sum::<u64>()
            + boxed.iter().map(|of| u64::from(of.data[7])).sum::<u64>()
    }

    /// Has a table on its stack, and runs without waiting. Its last call does not allocate.
    #[inline(never)]
    fn run(ready: &mpsc::Sender<()>) -> u64 {
        let table: HashMap<u32, Running> = (0..20).map(|number| (number, Running(5))).collect();
        ready.send(()).expect("the main thread waits");
        while !ENDS.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        table.values().map(|value| value.0).sum()
    }

    pub(super) fn main() {
        let dump = std::env::args().nth(1).expect("a file");
        // Chunks of at least 1,000 bytes. Each contains the values that do not fit in the previous chunk.
        let arena = bumpalo::Bump::with_capacity(1000);
        for _ in 0..3 {
            let _: &mut [u64; 120] = arena.alloc([0; 120]);
        }
        *ARENA.lock().expect("no panic") = Some(arena);
        let leaked: &'static bumpalo::Bump = Box::leak(Box::new(bumpalo::Bump::new()));
        let first = leaked.alloc(Value { _numbers: [1; 120], _next: None });
        let second = leaked.alloc(Value { _numbers: [2; 120], _next: Some(first) });
        *INSIDE.lock().expect("no panic") = Some(second);
        let (ready, is_ready) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let (ends_waiting, waits) = mpsc::channel::<()>();
        let (is_waiting, is_running) = (ready.clone(), ready.clone());
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let waiting = named("waiting").spawn(move || wait(&is_waiting, &waits)).expect("a thread");
        let captured = vec![Captured(6); 9];
        let running = named("running").spawn(move || run(&is_running) + captured[0].0).expect("a thread");
        let thread = thread::spawn(move || {
            EAGER.with_borrow_mut(|items| items.resize(5, Item(2)));
            LAZY.with_borrow_mut(|others| others[0].0 = 3);
            ready.send(()).expect("the main thread waits");
            let _ = ends.recv();
            EAGER.with_borrow(|items| items.iter().map(|item| item.0).sum::<u64>())
        });
        (0..3).for_each(|_| is_ready.recv().expect("the threads run"));
        // In this C library, the handle of a thread is the value of its register.
        std::fs::write(format!("{dump}.thread"), format!("{:x}", thread.as_pthread_t())).expect("a file");
        dmd::dump(&dump).expect("a dump");
        println!("ready");
        let mut rest = Vec::new();
        std::io::stdin().read_to_end(&mut rest).expect("standard input");
        drop((end, ends_waiting));
        ENDS.store(true, Ordering::Relaxed);
        let sums = [thread, waiting, running].map(|thread| thread.join().expect("no panic"));
        println!("{}", sums.iter().sum::<u64>());
    }
}
