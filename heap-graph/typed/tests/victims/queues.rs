//! Channels, queues, tables and trees with known contents. Their slots contained other values before. Usage:
//! `DMD=--mode=scan typed_heap_queues DUMP`. The program writes the dump and prints a line, and ends when its
//! standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot};

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

/// Whether a thread is about to send.
static SENDS: AtomicBool = AtomicBool::new(false);

/// The contents of a container. Each container has another number.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Item<const CONTAINER: usize>(u64);

/// A value that a container contained before. A stale word in its old place still leads to it.
struct Moved<const CONTAINER: usize>(Box<Item<CONTAINER>>);

type Of<const CONTAINER: usize> = Box<Item<CONTAINER>>;

struct Store {
    once: oneshot::Receiver<Of<1>>,
    /// A value that was sent and received.
    received: (oneshot::Receiver<Of<2>>, Moved<2>),
    broadcast: (broadcast::Sender<Arc<Item<3>>>, broadcast::Receiver<Arc<Item<3>>>),
    rendezvous: mpsc::Receiver<Of<4>>,
    bounded: (crossbeam_channel::Sender<Of<5>>, crossbeam_channel::Receiver<Of<5>>),
    unbounded: (crossbeam_channel::Sender<Of<6>>, crossbeam_channel::Receiver<Of<6>>),
    wrapped: VecDeque<Of<7>>,
    before: Vec<Moved<7>>,
    by_number: HashMap<u64, Of<8>>,
    removed: Vec<Moved<8>>,
    numbers: HashMap<Of<9>, u64>,
    tree: BTreeMap<Of<10>, Of<11>>,
    cut: Vec<(Moved<10>, Moved<11>)>,
}

fn item<const CONTAINER: usize>(number: u64) -> Of<CONTAINER> {
    Box::new(Item(number))
}

fn once<const CONTAINER: usize>() -> oneshot::Receiver<Of<CONTAINER>> {
    let (sender, receiver) = oneshot::channel();
    assert!(sender.send(item(1)).is_ok());
    receiver
}

/// A channel without capacity, at which a thread waits with an item.
fn rendezvous() -> mpsc::Receiver<Of<4>> {
    let (sender, receiver) = mpsc::sync_channel(0);
    let send = move || {
        let item = item(1);
        SENDS.store(true, Ordering::Release);
        sender.send(item).is_ok()
    };
    thread::Builder::new().name("sender".to_owned()).spawn(send).expect("a thread");
    loop {
        let before = waits();
        thread::sleep(Duration::from_millis(5));
        if SENDS.load(Ordering::Acquire) && before.is_ok_and(|before| waits().is_ok_and(|now| now == before))
        {
            return receiver;
        }
    }
}

/// For each other thread, the number of times that it has waited. An error if one of the threads does not wait now.
/// Empty on systems without `/proc`. A thread may wait for a lock before it waits to send, so the caller checks that
/// the numbers stay the same.
fn waits() -> Result<Vec<String>, Runs> {
    let own = std::process::id().to_string();
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Ok(Vec::new()) };
    let others = tasks.flatten().filter(|task| *task.file_name() != *own);
    others.map(|task| waits_of(&task.path())).collect()
}

/// The error if a thread runs or has ended.
struct Runs;

fn waits_of(task: &Path) -> Result<String, Runs> {
    let status = std::fs::read_to_string(task.join("status")).map_err(|_| Runs)?;
    let line = |name| status.lines().find_map(|line| line.strip_prefix(name)).ok_or(Runs);
    match line("State:")?.trim_start().starts_with('S') {
        true => line("voluntary_ctxt_switches:").map(str::to_owned),
        false => Err(Runs),
    }
}

fn store() -> Store {
    let mut received = once();
    let value = Moved(received.try_recv().expect("a value"));
    // Room for 4, 3 used.
    let broadcast = broadcast::channel(4);
    (0..3).for_each(|number| assert!(broadcast.0.send(Arc::new(Item(number))).is_ok()));
    // Room for 5 items, 2 used. The last item is from the second round through the buffer.
    let bounded = crossbeam_channel::bounded(5);
    for number in 0..6 {
        assert!(bounded.0.send(item(number)).is_ok());
        assert!(number > 3 || bounded.1.recv().is_ok());
    }
    let unbounded = crossbeam_channel::unbounded();
    (0..3).for_each(|number| assert!(unbounded.0.send(item(number)).is_ok()));
    // Room for 8. The places 5, 6, 7, 0, 1 and 2 are used.
    let mut wrapped: VecDeque<Of<7>> = VecDeque::with_capacity(8);
    wrapped.extend((0..6).map(item));
    let before = wrapped.drain(..5).map(Moved).collect();
    wrapped.extend((6..11).map(item));
    assert!(wrapped.capacity() == 8 && wrapped.as_slices().0.len() == 3);
    // 20 values stay, and 7 values are removed.
    let mut by_number: HashMap<u64, Of<8>> = (0..27).map(|number| (number, item(number))).collect();
    let removed = (20..27).filter_map(|number| by_number.remove(&number)).map(Moved).collect();
    // 40 values stay, and 10 values are removed.
    let mut tree: BTreeMap<Of<10>, Of<11>> = (0..50).map(|number| (item(number), item(number))).collect();
    let cut = (0..10).filter_map(|number| tree.remove_entry(&Item(5 * number)));
    let cut = cut.map(|(key, value)| (Moved(key), Moved(value))).collect();
    Store {
        once: once(),
        received: (received, value),
        broadcast,
        rendezvous: rendezvous(),
        bounded,
        unbounded,
        wrapped,
        before,
        by_number,
        removed,
        numbers: (0..12).map(|number| (item(number), number)).collect(),
        tree,
        cut,
    }
}

impl Store {
    fn sum(mut self) -> u64 {
        let once = self.once.try_recv().map_or(0, |item| item.0) + self.received.1.0.0;
        let sent = self.rendezvous.recv().map_or(0, |item| item.0) + self.broadcast.0.len() as u64;
        let queued = self.bounded.1.len() + self.unbounded.1.len() + self.wrapped.len() + self.numbers.len();
        let moved = self.before.iter().map(|one| one.0.0).sum::<u64>();
        let removed = self.removed.iter().map(|one| one.0.0).sum::<u64>();
        let cut = self.cut.iter().map(|(key, value)| key.0.0 + value.0.0).sum::<u64>();
        let kept = (self.by_number.len() + self.tree.len()) as u64;
        once + sent + queued as u64 + moved + removed + cut + kept
    }
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let store = Box::new(store());
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    println!("{}", store.sum());
}
