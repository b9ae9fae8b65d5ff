//! Containers of crates, channels and counted values with known contents. Usage:
//! `DMD=--mode=scan typed_heap_containers DUMP`. The program writes the dump and prints a line, and ends when its
//! standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::{Layout, System, alloc};
use std::cell::RefCell;
use std::collections::{BinaryHeap, LinkedList};
use std::io::Read as _;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, mpsc};

use bytes::{Bytes, BytesMut};
use compact_str::CompactString;
use smallvec::SmallVec;
use thin_vec::ThinVec;

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

/// The contents of a container. Each container has another number.
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

/// A dropped value. Its buffer has been freed, and a later block has the buffer's place.
struct Gone(Vec<u64>);

#[repr(C)]
struct Both<T: ?Sized> {
    #[allow(dead_code, reason = "it takes room")]
    number: u64,
    value: T,
}

/// A header, followed by elements. No type contains their number.
#[repr(C)]
struct Listed<T> {
    len: usize,
    items: [T; 0],
}

#[repr(C)]
struct Counted<T> {
    count: usize,
    value: T,
}

/// Allocates separate memory of this size, and never frees it. Its stack names no type.
#[inline(never)]
fn place(bytes: usize) -> *mut u8 {
    let layout = Layout::from_size_align(bytes, 8).expect("a layout");
    // SAFETY: callers pass sizes greater than 0.
    let place = unsafe { alloc(layout) };
    assert!(!place.is_null());
    place
}

/// A list with three elements and room for four.
fn listed<T>(items: impl Iterator<Item = T>) -> NonNull<Counted<Listed<T>>> {
    let place = place(size_of::<Counted<Listed<T>>>() + 4 * size_of::<T>());
    let list: *mut Counted<Listed<T>> = place.cast();
    let header = Counted { count: 1, value: Listed { len: 3, items: [] } };
    // SAFETY: the place is new, and has room for the header.
    unsafe { list.write(header) };
    for (number, item) in items.take(3).enumerate() {
        let behind = size_of::<Counted<Listed<T>>>() + number * size_of::<T>();
        // SAFETY: the place has room for four elements behind the header.
        let at = unsafe { place.add(behind) }.cast::<T>();
        // SAFETY: this element has not been written yet.
        unsafe { at.write(item) };
    }
    NonNull::new(list).expect("a place")
}

/// A value whose last field ends in a slice.
fn sliced<T>(items: impl Iterator<Item = T>) -> Box<Both<Both<[T]>>> {
    let items: Vec<T> = items.collect();
    let place = place(16 + items.len() * size_of::<T>());
    let whole = std::ptr::slice_from_raw_parts_mut(place, items.len()) as *mut Both<Both<[T]>>;
    for (number, item) in items.into_iter().enumerate() {
        // SAFETY: the place has room for both numbers, and this element behind them.
        let at = unsafe { place.add(16 + number * size_of::<T>()) }.cast::<T>();
        // SAFETY: this element has not been written yet.
        unsafe { at.write(item) };
    }
    for number in 0..2_u64 {
        // SAFETY: both numbers are before the elements.
        let at = unsafe { place.add(8 * number as usize) };
        // SAFETY: this number has not been written yet.
        unsafe { at.cast::<u64>().write(number) };
    }
    // SAFETY: the value is complete, and has the size and the alignment of the memory.
    unsafe { Box::from_raw(whole) }
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
    #[expect(dead_code, reason = "it reuses the memory of the freed value")]
    instead: Vec<Item<13>>,
    whole: Bytes,
    part: Bytes,
    buffer: BytesMut,
    text: CompactString,
    short: CompactString,
    shared: Arc<str>,
    /// Text that was allocated as bytes.
    text_of_bytes: Arc<str>,
    open: NonNull<Counted<Listed<Option<Box<Item<14>>>>>>,
    sliced: Box<Both<Both<[Box<Item<15>>]>>>,
    /// A slice that was allocated as an array.
    locked: Arc<Mutex<[Box<Item<16>>]>>,
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
        // SAFETY: the bytes are text, and text has the layout of its bytes.
        text_of_bytes: unsafe {
            Arc::from_raw(Arc::into_raw(Arc::<[u8]>::from(b"other text".to_vec())) as *const str)
        },
        open: listed(items(3).map(Some)),
        sliced: sliced(items(5)),
        locked: Arc::new(Mutex::new([1, 2].map(|number| Box::new(Item(number))))),
    }
}

impl Store {
    fn sum(&self) -> usize {
        let counted = self.inline.len() + self.spilled.len() + self.wide.len() + self.thin.len();
        let texts = self.text.len()
            + self.short.len()
            + self.shared.len()
            + self.text_of_bytes.len()
            + self.buffer.len();
        let shared = self.whole.len() + self.part.len() + self.slice.len();
        let jobs = self.job.lock().map_or(0, |job| job.run()) + self.within.value.run();
        let gone = self.gone.upgrade().map_or(0, |gone| gone.0.len());
        let watched = self.watches.upgrade().map_or(0, |item| item.0 + self.watched.0) as usize;
        let queued = self.queue.1.try_iter().count() + self.bounded.1.try_iter().count();
        // SAFETY: the list is never freed.
        let listed = unsafe { self.open.as_ref() };
        let open = listed.count + listed.value.len + listed.value.items.len();
        let behind = self.sliced.value.value.len() + self.locked.lock().map_or(0, |items| items.len());
        open + behind
            + counted
            + texts
            + shared
            + jobs
            + gone
            + watched
            + queued
            + self.list.len()
            + self.largest.len()
    }
}

impl Clone for Item<11> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

/// Holds the other half of its pair.
struct Parent {
    #[expect(dead_code, reason = "it takes room")]
    rows: Vec<Item<17>>,
    child: RefCell<Option<Rc<Child>>>,
}

struct Child {
    #[expect(dead_code, reason = "it takes room")]
    columns: Vec<Item<18>>,
    #[expect(dead_code, reason = "it keeps the parent alive")]
    parent: Rc<Parent>,
}

/// Leaks pairs that hold each other. The values of a pair are allocated before the pair, so at lower addresses.
fn leak_pairs() {
    for _ in 0..20 {
        let (rows, columns) = ((0..9).map(Item).collect(), (0..7).map(Item).collect());
        let parent = Rc::new(Parent { rows, child: RefCell::new(None) });
        let child = Rc::new(Child { columns, parent: Rc::clone(&parent) });
        parent.child.replace(Some(child));
    }
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let store = Box::new(store());
    leak_pairs();
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    println!("{} {}", store.sum(), store.tokio.1.len());
}
