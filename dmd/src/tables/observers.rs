//! Who gets every event of every block, in batches: a recording, and the logs of allocations.
//!
//! A thread keeps the events of its list ([`pending`](super::pending)) with their addresses and ticks while anybody
//! observes, and hands them over when it settles. Another thread may hand over what a quiet one has
//! ([`hand_over_all`](super::thread::hand_over_all)). An event that has no place in a list is a batch of its own; the
//! thread hands its list over first, so that its events stay in order. Signal handlers that interrupt the engine,
//! and threads without a lease, put events into a short queue without a lock, and their thread is not known.
//!
//! An observer runs inside the engine, with the lock of the thread's lease: it neither allocates through hooks nor
//! panics, and waits for no other thread that may settle.

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::system::clock;
use crate::system::lock::{Lock, LockGuard};
use crate::tables::block_table::TableBlock;
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::pending::EventList;
use crate::tables::statistics::BlockEnd;
use crate::tables::trace_id::TraceId;

/// The places of observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObserverPlace {
    Recording,
    Logs,
}

const PLACES: usize = 2;

/// The thread of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventSource {
    /// The number of the lease, which has one thread at a time; `None` if the thread is not known.
    pub(crate) lease: Option<usize>,
    /// The number of the thread, from 1; 0 if it is not known.
    pub(crate) thread: u32,
    /// The system's number of the thread; 0 if it is not known.
    pub(crate) system_id: u32,
}

impl EventSource {
    const UNKNOWN: Self = Self { lease: None, thread: 0, system_id: 0 };
}

/// Events of one thread, in order.
pub(crate) enum EventBatch<'a> {
    List(EventList<'a>),
    One(TableEvent),
}

impl EventBatch<'_> {
    /// The number of events.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::One(_) => 1,
        }
    }

    #[inline(always)]
    pub(crate) fn for_each(&self, mut each: impl FnMut(TableEvent)) {
        match self {
            Self::List(list) => list.for_each(each),
            Self::One(event) => each(*event),
        }
    }
}

/// What gets the events. Functions of one lease never run at the same time.
pub(crate) trait Observer: Sync {
    /// Gets the next events of a thread.
    fn observe(&self, source: EventSource, batch: &EventBatch<'_>);

    /// A thread gets a lease: it is about to record its first block. It holds no lock.
    fn thread_began(&self);

    /// The thread has ended: its lease may get another one. With `again` the thread had ended before, and came back for
    /// an event: the C library frees memory of a thread late.
    fn thread_ended(&self, source: EventSource, again: bool);

    /// Calls `each` for all locks that the observer takes, in the order in which it takes them together.
    fn for_each_lock(&self, each: &mut dyn FnMut(&Lock));

    /// This process is the child of a fork. Events from before the fork are the parent's.
    fn after_fork_in_child(&self);
}

static OBSERVERS: [OnceLock<&'static dyn Observer>; PLACES] = [const { OnceLock::new() }; PLACES];
/// A bit for each place whose observer gets events.
static ACTIVE: AtomicU8 = AtomicU8::new(0);

/// Whether anybody observes.
#[inline(always)]
pub(crate) fn any() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// Gives a place its observer, which gets no events yet. A fork takes the locks of all observers that it finds, so each
/// registers before the process can have a second thread.
pub(crate) fn register(place: ObserverPlace, observer: &'static dyn Observer) {
    OBSERVERS[place as usize].get_or_init(|| observer);
}

/// Switches the observer of a place on. Only [`thread::observe`](super::thread::observe) calls this: it also tells all leases.
pub(super) fn switch_on(place: ObserverPlace, observer: &'static dyn Observer) {
    register(place, observer);
    ACTIVE.fetch_or(1 << place as u8, Ordering::SeqCst);
}

/// Only [`thread::stop_observing`](super::thread::stop_observing) calls this.
pub(super) fn switch_off(place: ObserverPlace) {
    ACTIVE.fetch_and(!(1 << place as u8), Ordering::SeqCst);
}

fn for_each_active(mut each: impl FnMut(&'static dyn Observer)) {
    let active = ACTIVE.load(Ordering::Relaxed);
    for (place, observer) in OBSERVERS.iter().enumerate() {
        if active & 1 << place != 0
            && let Some(observer) = observer.get()
        {
            each(*observer);
        }
    }
}

/// The caller holds the lock of the source's lease.
pub(super) fn observe(source: EventSource, batch: &EventBatch<'_>) {
    for_each_active(|observer| observer.observe(source, batch));
}

/// The caller holds no lock.
pub(super) fn thread_began() {
    for_each_active(|observer| observer.thread_began());
}

/// The caller holds the lock of the source's lease.
pub(super) fn thread_ended(source: EventSource, again: bool) {
    for_each_active(|observer| observer.thread_ended(source, again));
}

/// Calls `each` for the locks of all observers, in the order in which a thread may take them together.
pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(&TAKING);
    for observer in OBSERVERS.iter().filter_map(OnceLock::get) {
        observer.for_each_lock(each);
    }
}

/// For the child of a fork.
pub(crate) fn after_fork_in_child() {
    TAKEN.store(ADDED.load(Ordering::Relaxed), Ordering::Relaxed);
    for observer in OBSERVERS.iter().filter_map(OnceLock::get) {
        observer.after_fork_in_child();
    }
}

/// Most events without a lease that wait for an observer.
const WAITING: usize = 1024;

/// An event that waits. `ready` is its number plus 1 once all of it is there.
struct WaitingEvent {
    ready: AtomicU64,
    tick: AtomicU64,
    address: AtomicUsize,
    requested: AtomicUsize,
    slop: AtomicUsize,
    /// The stack, and above it what happened.
    trace_and_more: AtomicU64,
}

static QUEUE: [WaitingEvent; WAITING] = [const {
    WaitingEvent {
        ready: AtomicU64::new(0),
        tick: AtomicU64::new(0),
        address: AtomicUsize::new(0),
        requested: AtomicUsize::new(0),
        slop: AtomicUsize::new(0),
        trace_and_more: AtomicU64::new(0),
    }
}; WAITING];
static ADDED: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
/// Held by the thread that takes events from the queue.
static TAKING: Lock = Lock::new();

const HAPPENED: [EventKind; 4] = [
    EventKind::Began,
    EventKind::Ended(BlockEnd::Freed),
    EventKind::Ended(BlockEnd::Moved),
    EventKind::CameBack,
];

/// Keeps other threads from handing over events whose thread is not known.
pub(crate) fn hold_unknown() -> LockGuard<'static> {
    TAKING.hold()
}

/// Events that were not handed over, since the queue was full.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Hands an event over that has no lease. Any code may call this, also a signal handler that interrupted the engine.
#[cold]
#[inline(never)]
pub(crate) fn observe_alone(address: usize, happened: EventKind, block: TableBlock) {
    if !any() {
        return;
    }
    let has_room = |added: u64| {
        let waiting = added.wrapping_sub(TAKEN.load(Ordering::Acquire));
        (waiting < WAITING as u64).then_some(added + 1)
    };
    let Ok(number) = ADDED.fetch_update(Ordering::AcqRel, Ordering::Relaxed, has_room) else {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let place = &QUEUE[number as usize % WAITING];
    let code = HAPPENED.iter().position(|known| *known == happened).unwrap_or_default();
    place.tick.store(clock::ticks(), Ordering::Relaxed);
    place.address.store(address, Ordering::Relaxed);
    place.requested.store(block.requested, Ordering::Relaxed);
    place.slop.store(block.slop, Ordering::Relaxed);
    let flags = (code as u64) << 1 | u64::from(block.sampled);
    place.trace_and_more.store(flags << u32::BITS | u64::from(block.trace.0), Ordering::Relaxed);
    place.ready.store(number + 1, Ordering::Release);
}

/// Whether many events wait in the queue.
#[inline]
pub(super) fn many_wait() -> bool {
    const MANY: u64 = 32;
    ADDED.load(Ordering::Relaxed).wrapping_sub(TAKEN.load(Ordering::Relaxed)) >= MANY
}

/// Hands the events of the queue over. The caller is inside the engine.
#[cold]
pub(super) fn take_alone() {
    let _taking = TAKING.hold();
    loop {
        let number = TAKEN.load(Ordering::Relaxed);
        let place = &QUEUE[number as usize % WAITING];
        if place.ready.load(Ordering::Acquire) != number + 1 {
            if ADDED.load(Ordering::Acquire).wrapping_sub(number) < WAITING as u64 / 2 {
                return;
            }
            // A signal handler that jumped away never finishes its event. The others must not wait for it.
            LOST.fetch_add(1, Ordering::Relaxed);
            TAKEN.store(number + 1, Ordering::Release);
            continue;
        }
        let word = place.trace_and_more.load(Ordering::Relaxed);
        let (code, sampled) = (word >> (u32::BITS + 1), word >> u32::BITS & 1 == 1);
        let block = TableBlock {
            requested: place.requested.load(Ordering::Relaxed),
            slop: place.slop.load(Ordering::Relaxed),
            trace: TraceId(word as u32),
            sampled,
            marked: false,
        };
        let event = TableEvent {
            tick: place.tick.load(Ordering::Relaxed),
            address: place.address.load(Ordering::Relaxed),
            happened: HAPPENED[code as usize % HAPPENED.len()],
            block,
        };
        TAKEN.store(number + 1, Ordering::Release);
        observe(EventSource::UNKNOWN, &EventBatch::One(event));
    }
}
