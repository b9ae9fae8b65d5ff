//! Containers of crates, channels and counted values, and what each has: `DMD=--mode=scan typed_heap_containers DUMP`. It
//! writes the dump and a line, and ends with its standard input.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::collections::{BinaryHeap, LinkedList};
use std::io::Read as _;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, mpsc};

use bytes::{Bytes, BytesMut};
use compact_str::CompactString;
use smallvec::SmallVec;
use thin_vec::ThinVec;

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

/// What a container has: each container another number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Item<const CONTAINER: usize>(u64);

trait Run {
    fn run(&self) -> usize;
}

struct Job(Vec<Item<11>>);

impl Run for Job {
    fn run(&self) -> usize {
        self.0.len()
    }
}

/// Its numbers are gone, and a later block has their place.
struct Gone(Vec<u64>);

struct Both<T: ?Sized> {
    #[expect(dead_code, reason = "it takes room")]
    number: u64,
    value: T,
}

struct Store {
    inline: SmallVec<[Box<Item<1>>; 4]>,
    spilled: SmallVec<[Box<Item<2>>; 2]>,
    wide: SmallVec<[Box<Item<3>>; 128]>,
    thin: ThinVec<Box<Item<4>>>,
    list: LinkedList<Box<Item<5>>>,
    largest: BinaryHeap<Box<Item<6>>>,
    queue: (mpsc::Sender<Box<Item<7>>>, mpsc::Receiver<Box<Item<7>>>),
    bounded: (mpsc::SyncSender<Box<Item<8>>>, mpsc::Receiver<Box<Item<8>>>),
    tokio: (
        tokio::sync::mpsc::UnboundedSender<Box<Item<9>>>,
        tokio::sync::mpsc::UnboundedReceiver<Box<Item<9>>>,
    ),
    slice: Arc<[Box<Item<10>>]>,
    job: Arc<Mutex<dyn Run>>,
    within: Rc<Both<dyn Run>>,
    watched: Rc<Item<12>>,
    watches: Weak<Item<12>>,
    gone: Weak<Gone>,
    #[expect(dead_code, reason = "it takes the place of what is gone")]
    instead: Vec<Item<13>>,
    whole: Bytes,
    part: Bytes,
    buffer: BytesMut,
    text: CompactString,
    short: CompactString,
    shared: Arc<str>,
}

fn items<const CONTAINER: usize>(count: u64) -> impl Iterator<Item = Box<Item<CONTAINER>>> {
    (0..count).map(|number| Box::new(Item(number)))
}

fn store() -> Store {
    // Room for 6, 5 of them used.
    let mut spilled = SmallVec::with_capacity(6);
    spilled.extend(items(5));
    // Room for 7, 3 of them used.
    let mut thin = ThinVec::with_capacity(7);
    thin.extend(items(3));
    let queue = mpsc::channel();
    items(3).for_each(|item| queue.0.send(item).expect("a receiver"));
    let bounded = mpsc::sync_channel(5);
    items(2).for_each(|item| bounded.0.send(item).expect("a receiver"));
    let tokio = tokio::sync::mpsc::unbounded_channel();
    items(4).for_each(|item| assert!(tokio.0.send(item).is_ok()));
    let watched = Rc::new(Item(1));
    let last = Rc::new(Gone(vec![1; 77]));
    let gone = Rc::downgrade(&last);
    drop(last);
    let instead = (0..77).map(Item).collect();
    let whole = Bytes::from(vec![1; 100]);
    let mut buffer = BytesMut::with_capacity(300);
    buffer.extend_from_slice(&[1; 10]);
    Store {
        inline: items(2).collect(),
        spilled,
        wide: items(3).collect(),
        thin,
        list: items(3).collect(),
        largest: items(4).collect(),
        queue,
        bounded,
        tokio,
        slice: items(3).collect(),
        job: Arc::new(Mutex::new(Job(vec![Item(1); 5]))),
        within: Rc::new(Both { number: 1, value: Job(vec![Item(1); 6]) }),
        watches: Rc::downgrade(&watched),
        watched,
        gone,
        instead,
        part: whole.slice(20..50),
        whole,
        buffer,
        text: "forty characters are too long for inline".into(),
        short: "short".into(),
        shared: "a text of 30 characters or so.".into(),
    }
}

impl Store {
    fn sum(&self) -> usize {
        let counted = self.inline.len() + self.spilled.len() + self.wide.len() + self.thin.len();
        let texts = self.text.len() + self.short.len() + self.shared.len() + self.buffer.len();
        let shared = self.whole.len() + self.part.len() + self.slice.len();
        let jobs = self.job.lock().map_or(0, |job| job.run()) + self.within.value.run();
        let gone = self.gone.upgrade().map_or(0, |gone| gone.0.len());
        let watched = self.watches.upgrade().map_or(0, |item| item.0 + self.watched.0) as usize;
        let queued = self.queue.1.try_iter().count() + self.bounded.1.try_iter().count();
        counted + texts + shared + jobs + gone + watched + queued + self.list.len() + self.largest.len()
    }
}

impl Clone for Item<11> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let store = Box::new(store());
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    println!("{} {}", store.sum(), store.tokio.1.len());
}
