//! Observers get every event of every block, in batches. They are the recording and the logs of allocations.
//!
//! While an observer is on, a thread keeps the address and the tick of each event in its list
//! ([`pending`](super::pending)), and hands the events over when it settles. For a quiet thread, another thread may
//! hand the events over ([`hand_over_all`](super::thread::hand_over_all)). An event that does not fit into a list is a
//! batch of its own. The thread hands its list over before such an event, so that its events stay in order. Signal
//! handlers that interrupt the engine, and threads without a lease, put events into a short queue without a lock. For
//! these events the thread is unknown.
//!
//! An observer runs inside the engine's guard, with the lock of the thread's lease. It neither allocates through hooks
//! nor panics, and does not wait for another thread that may settle.

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::system::clock;
use crate::system::lock::{Lock, LockGuard};
use crate::tables::block_table::TableBlock;
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::pending::EventList;
use crate::tables::statistics::BlockEnd;
use crate::tables::trace_id::TraceId;

/// The observers, by their place in the list of observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObserverPlace {
    Recording,
    Logs,
}

const PLACES: usize = 2;

/// The thread of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventSource {
    /// The number of the lease, which belongs to one thread at a time; `None` if the thread is unknown.
    pub(crate) lease: Option<usize>,
    /// The number of the thread, from 1; 0 if it is unknown.
    pub(crate) thread: u32,
    /// The system's number of the thread; 0 if it is unknown.
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

/// Receives the events. Calls for the same lease never run at the same time.
pub(crate) trait Observer: Sync {
    /// Receives the next events of a thread.
    fn observe(&self, source: EventSource, batch: &EventBatch<'_>);

    /// Runs when a thread gets its first lease, before its first block is recorded. The thread holds no lock.
    fn thread_began(&self);

    /// Runs when a thread has ended: its lease may go to another thread. `again` means that the thread had ended
    /// before and recorded another event, because the C library frees a thread's memory late.
    fn thread_ended(&self, source: EventSource, again: bool);

    /// Calls `each` for all locks that the observer takes, in the order in which it takes several of them.
    fn for_each_lock(&self, each: &mut dyn FnMut(&Lock));

    /// Runs in the child of a fork. Events from before the fork belong to the parent.
    fn after_fork_in_child(&self);
}

static OBSERVERS: [OnceLock<&'static dyn Observer>; PLACES] = [const { OnceLock::new() }; PLACES];
/// A bit for each place whose observer is on.
static ACTIVE: AtomicU8 = AtomicU8::new(0);

/// Whether an observer is on.
#[inline(always)]
pub(crate) fn any() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// Sets the observer of a place. The observer is not on yet. A fork takes the locks of all registered observers, so
/// each observer must register before the engine handles forks, or before the process can have a second thread.
pub(crate) fn register(place: ObserverPlace, observer: &'static dyn Observer) {
    OBSERVERS[place as usize].get_or_init(|| observer);
}

/// Switches the observer of a place on. Only [`thread::observe`](super::thread::observe) calls this, and it also
/// updates all leases.
pub(super) fn switch_on(place: ObserverPlace, observer: &'static dyn Observer) {
    register(place, observer);
    ACTIVE.fetch_or(1 << place as u8, Ordering::SeqCst);
}

/// Switches the observer of a place off. Only [`thread::stop_observing`](super::thread::stop_observing) calls this.
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

/// Passes a batch to the observers that are on. The caller holds the lock of the source's lease.
pub(super) fn observe(source: EventSource, batch: &EventBatch<'_>) {
    for_each_active(|observer| observer.observe(source, batch));
}

/// Informs the observers that are on: this thread has got its first lease. The caller holds no lock.
pub(super) fn thread_began() {
    for_each_active(|observer| observer.thread_began());
}

/// Informs the observers that are on: a thread has ended. The caller holds the lock of the source's lease.
pub(super) fn thread_ended(source: EventSource, again: bool) {
    for_each_active(|observer| observer.thread_ended(source, again));
}

/// Calls `each` for the locks of all observers, in the order in which a thread may take several of them.
pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(&TAKING);
    for observer in OBSERVERS.iter().filter_map(OnceLock::get) {
        observer.for_each_lock(each);
    }
}

/// Informs the observers that this process is the child of a fork.
pub(crate) fn after_fork_in_child() {
    TAKEN.store(ADDED.load(Ordering::Relaxed), Ordering::Relaxed);
    for observer in OBSERVERS.iter().filter_map(OnceLock::get) {
        observer.after_fork_in_child();
    }
}

/// The maximum number of waiting events without a lease.
const WAITING: usize = 1024;

/// A waiting event. `ready` is the event's number plus 1 when the event is complete.
struct WaitingEvent {
    ready: AtomicU64,
    tick: AtomicU64,
    address: AtomicUsize,
    requested: AtomicUsize,
    slop: AtomicUsize,
    /// The stack in the lower half; the kind of event and the sample flag in the upper half.
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

/// Prevents other threads from handing over events of unknown threads until the result is dropped.
pub(crate) fn hold_unknown() -> LockGuard<'static> {
    TAKING.hold()
}

/// The number of events that were lost because the queue was full, or because a jump left them incomplete.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Puts an event without a lease into the queue. Any code may call this, even a signal handler that interrupted the
/// engine.
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

/// Hands the events of the queue over. The caller is inside the engine's guard.
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
            // A signal handler that has jumped away never completes its event. Skip the event, so that later events
            // do not wait for it.
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
