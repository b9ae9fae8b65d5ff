//! Values with which other crates fail: deep recursion, held and poisoned locks, a borrowed cell, a cycle. Each case
//! runs in a child process.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

use memory_reporter::{MallocSizeOf, MallocSizeOfOps};

use crate::measurers;
use crate::rivals::Measurer;

#[derive(
    MallocSizeOf,
    allocative::Allocative,
    deepsize::DeepSizeOf,
    get_size2::GetSize,
    heapsize_derive::HeapSizeOf,
    loupe::MemoryUsage,
    malloc_size_of_derive::MallocSizeOf,
    parity_util_mem::MallocSizeOf,
)]
struct List {
    value: u64,
    next: Option<Box<List>>,
}

#[derive(MallocSizeOf, allocative::Allocative, deepsize::DeepSizeOf, get_size2::GetSize)]
struct Ring {
    next: RefCell<Option<Rc<Ring>>>,
}

const CASES: [&str; 8] = [
    "list of 100,000",
    "list of 1,000,000",
    "list of 1,000,000, 2 MiB stack",
    "RefCell borrowed",
    "Mutex held",
    "Mutex poisoned",
    "RwLock held",
    "Rc cycle",
];

pub(crate) fn run() {
    let names: Vec<&str> = measurers!(u8).iter().map(|(name, _)| *name).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("floor")).collect();
    println!("| case | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    for case in CASES {
        print!("| {case} |");
        for name in &names {
            print!(" {} |", outcome(case, name));
        }
        println!();
    }
}

fn outcome(case: &str, name: &str) -> String {
    let program = std::env::current_exe().expect("a running program has a file");
    // `timeout` ends a measurement that waits for a lock.
    let child = Command::new("timeout").arg("10").arg(program).args(["hazards", case, name]).output();
    let child = child.expect("`timeout` runs");
    match (child.status.code(), child.status.signal()) {
        (Some(0), _) => String::from_utf8_lossy(&child.stdout).trim().to_owned(),
        (Some(124), _) => "hangs".to_owned(),
        (Some(101), _) => "panics".to_owned(),
        (Some(code), _) => format!("dies ({})", code - 128),
        (None, signal) => format!("dies ({})", signal.unwrap_or(0)),
    }
}

fn answer<T>(measurers: &[Measurer<T>], name: &str, value: &T) {
    let (_, measure) = measurers.iter().find(|(other, _)| *other == name).expect("a measurer's name");
    println!("{}", measure(value).map_or("-".to_owned(), |bytes| bytes.to_string()));
}

/// memory-reporter also lists the parts that it skipped.
fn ours<T: MallocSizeOf>(measurers: &[Measurer<T>], name: &str, value: &T) {
    if name.starts_with("ours") {
        let mut ops = MallocSizeOfOps::computed();
        value.size_of_excluding_this(&mut ops);
        for skipped in ops.skipped() {
            let text = skipped.to_string();
            print!("says \"{}\", ", text.rsplit(": ").next().unwrap_or_default());
        }
    }
    answer(measurers, name, value);
}

fn list(nodes: u64) -> ManuallyDrop<List> {
    let mut next = None;
    for value in 0..nodes {
        next = Some(Box::new(List { value, next }));
    }
    // The list is never dropped, because the drop would recurse once for each element.
    ManuallyDrop::new(List { value: nodes, next })
}

/// Runs one case for one measurer in this process.
pub(crate) fn run_one(case: &str, name: &str) {
    match case {
        "list of 100,000" => answer(&measurers!(List), name, &list(100_000)),
        "list of 1,000,000" => answer(&measurers!(List), name, &list(1_000_000)),
        "list of 1,000,000, 2 MiB stack" => thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(2 << 20);
            let run = || answer(&measurers!(List), name, &list(1_000_000));
            let thread = builder.spawn_scoped(scope, run).expect("a thread starts");
            thread.join().expect("memory-reporter does not panic");
        }),
        "RefCell borrowed" => {
            let value = RefCell::new(vec![1_u8; 100]);
            let _held = value.borrow_mut();
            ours(&measurers!(RefCell<Vec<u8>>), name, &value);
        }
        "Mutex held" => {
            let value = Mutex::new(vec![1_u8; 100]);
            let _held = value.lock();
            ours(&measurers!(Mutex<Vec<u8>>), name, &value);
        }
        "Mutex poisoned" => {
            let value = Arc::new(Mutex::new(vec![1_u8; 100]));
            let other = Arc::clone(&value);
            let thread = thread::spawn(move || {
                let _held = other.lock();
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(thread.join().is_err());
            ours(&measurers!(Mutex<Vec<u8>>), name, &value);
        }
        "RwLock held" => {
            let value = RwLock::new(vec![1_u8; 100]);
            let _held = value.write();
            ours(&measurers!(RwLock<Vec<u8>>), name, &value);
        }
        "Rc cycle" => {
            let ring = Rc::new(Ring { next: RefCell::new(None) });
            *ring.next.borrow_mut() = Some(Rc::clone(&ring));
            ours(&measurers!(Rc<Ring>), name, &ring);
        }
        _ => println!("no such case"),
    }
}
