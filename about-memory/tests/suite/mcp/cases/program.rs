//! Programs with a known fault each, or without a fault. The argument is the name of the case. All blocks have sizes of
//! 8 above a multiple of 16, so that their usable sizes equal their requested sizes with glibc.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

type Block = Box<[u8; 1000]>;

#[inline(never)]
fn block() -> Block {
    black_box(Box::new([1; 1000]))
}

/// Expected: 100 blocks of 1,000 bytes, live at the end.
#[inline(never)]
fn forget_boxes() {
    for _ in 0..100 {
        std::mem::forget(black_box(Box::new([1_u8; 1000])));
    }
}

struct CycleNode {
    other: RefCell<Option<Rc<CycleNode>>>,
    /// With two counts and the field above, 1,000 bytes.
    _data: [u8; 968],
}

/// Expected: 60 blocks of 1,000 bytes, live at the end: each pair keeps itself alive.
#[inline(never)]
fn make_cycles() {
    for _ in 0..30 {
        let first = Rc::new(CycleNode { other: RefCell::new(None), _data: [1; 968] });
        let second = Rc::new(CycleNode { other: RefCell::new(None), _data: [1; 968] });
        *first.other.borrow_mut() = Some(Rc::clone(&second));
        *second.other.borrow_mut() = Some(first);
    }
}

static REGISTRY: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// Expected: 200 blocks of 1,000 bytes, live at the end: the registry never drops an entry.
#[inline(never)]
fn register_sessions() {
    for _ in 0..200 {
        let session = Box::new([1_u8; 1000]);
        REGISTRY.lock().unwrap().push(black_box(session));
    }
}

/// Expected: 150 blocks of 1,000 bytes, live at the end: the map has no limit.
#[inline(never)]
fn cache_pages(cache: &mut HashMap<u64, Block>) {
    for page in 0..150 {
        let body = Box::new([1_u8; 1000]);
        cache.insert(page, black_box(body));
    }
}

/// Expected: 120 blocks of 1,000 bytes, live at the end: no one reads the messages.
#[inline(never)]
fn send_messages(sender: &Sender<Block>) {
    for _ in 0..120 {
        let message = Box::new([1_u8; 1000]);
        sender.send(black_box(message)).unwrap();
    }
}

/// Expected: 1 block of 100,008 bytes, live at the end: the thread never ends.
#[inline(never)]
fn keep_buffer() {
    let buffer: Vec<u8> = black_box(Vec::with_capacity(100_008));
    thread::sleep(Duration::from_secs(600));
    drop(buffer);
}

/// Expected: `lines` blocks of 1,000 bytes, live at the end.
#[inline(never)]
fn write_log(log: &mut Vec<Block>, lines: usize) {
    for _ in 0..lines {
        let line = Box::new([1_u8; 1000]);
        log.push(black_box(line));
    }
}

/// Expected: 50 blocks of 1,000 bytes, live at the end, however many rounds run.
#[inline(never)]
fn fill_ring(ring: &mut Vec<Block>, rounds: usize) {
    for round in 0..50 * rounds {
        let entry = black_box(Box::new([1_u8; 1000]));
        match ring.get_mut(round % 50) {
            Some(old) => *old = entry,
            None => ring.push(entry),
        }
    }
}

/// Expected: 5,000 blocks of 1,000 bytes at the peak, and none at the end.
#[inline(never)]
fn sort_once() {
    let mut all = Vec::new();
    for _ in 0..5000 {
        let item = Box::new([1_u8; 1000]);
        all.push(black_box(item));
    }
    drop(black_box(all));
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap();
    let number = arguments.next().map_or(1, |number| number.parse().unwrap());
    drop(block());
    let (sender, receiver): (Sender<Block>, Receiver<Block>) = mpsc::channel();
    let (mut cache, mut list) = (HashMap::new(), Vec::new());
    match &*case {
        "forget" => forget_boxes(),
        "cycle" => make_cycles(),
        "registry" => register_sessions(),
        "map" => cache_pages(&mut cache),
        "channel" => send_messages(&sender),
        "thread" => {
            thread::spawn(keep_buffer);
            thread::sleep(Duration::from_millis(300));
        }
        "growth" => write_log(&mut list, number),
        "ring" => fill_ring(&mut list, number),
        "peak" => sort_once(),
        other => panic!("{other} is no case"),
    }
    // The program ends with all values alive.
    std::mem::forget((cache, list, sender, receiver));
}
