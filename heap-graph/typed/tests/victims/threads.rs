//! A thread with thread-locals: `DMD=--mode=scan typed_heap_threads DUMP`. It writes the dump, the register of the thread as
//! `DUMP.thread`, and a line, and ends with its standard input.

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
    use std::io::Read as _;
    use std::os::unix::thread::JoinHandleExt as _;
    use std::sync::mpsc;
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

    pub(super) fn main() {
        let dump = std::env::args().nth(1).expect("a file");
        let (ready, is_ready) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            EAGER.with_borrow_mut(|items| items.resize(5, Item(2)));
            LAZY.with_borrow_mut(|others| others[0].0 = 3);
            ready.send(()).expect("the main thread waits");
            let _ = ends.recv();
            EAGER.with_borrow(|items| items.iter().map(|item| item.0).sum::<u64>())
        });
        is_ready.recv().expect("the thread runs");
        // With this C library, the handle of a thread is what its register says.
        std::fs::write(format!("{dump}.thread"), format!("{:x}", thread.as_pthread_t())).expect("a file");
        dmd::dump(&dump).expect("a dump");
        println!("ready");
        let mut rest = Vec::new();
        std::io::stdin().read_to_end(&mut rest).expect("standard input");
        drop(end);
        println!("{}", thread.join().expect("no panic"));
    }
}
