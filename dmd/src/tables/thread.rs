//! Leases: the memory of each thread for taking stacks and for its pending events.
//!
//! A thread leases the memory from a pool when it records its first block, and returns the memory when the thread ends.
//! So the pool does not grow with the number of ended threads.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::byte_sampler::ByteSampler;
use crate::sampler::Sampler;
use crate::system::background::system_id;
use crate::system::lock::{Lock, LockGuard};
use crate::system::memory::{Arena, OwnLine};
use crate::system::process_seed;
use crate::system::slot::{Inside, slot, thread_pointer};
use crate::system::thread_end;
#[cfg(target_os = "linux")]
use crate::system::{engine_threads, late_start};
use crate::tables::events::TableEvent;
use crate::tables::observers::{self, EventBatch, EventSource, Observer, ObserverPlace};
use crate::tables::pending::PendingEvents;
use crate::tables::stack::ThreadStack;

/// A thread's state for recording blocks. Only the thread that leased it uses it, inside the engine's guard.
pub(crate) struct ThreadState {
    pub(crate) sampler: Sampler,
    pub(crate) byte_sampler: ByteSampler,
    pub(crate) stack: ThreadStack,
    /// The usable bytes of small blocks since the last sampled block.
    pub(crate) below: usize,
}

/// The memory that a thread leases.
pub(crate) struct Lease {
    state: UnsafeCell<ThreadState>,
    pub(crate) pending: PendingEvents,
    number: AtomicUsize,
    /// The thread's own number.
    thread: AtomicU32,
    system_id: AtomicU32,
    /// The thread pointer; 0 if no thread has the lease.
    thread_pointer: AtomicUsize,
    next: AtomicPtr<Lease>,
    next_free: AtomicPtr<Lease>,
}

/// Locks for leases. A thread holds the lock that belongs to its lease's number while it settles events and hands them
/// over. So a dump, or the child of a fork, never finds an event half processed.
static SETTLING: [OwnLine<Lock>; 16] = [const { OwnLine(Lock::new()) }; 16];

/// The number of threads so far that had a lease.
static THREADS: AtomicU32 = AtomicU32::new(0);

/// The function that counts events for the peak.
static COUNT: OnceLock<fn(&PendingEvents)> = OnceLock::new();

struct LeasePool {
    lock: Lock,
    arena: Arena,
    all: AtomicPtr<Lease>,
    free: AtomicPtr<Lease>,
    made: AtomicUsize,
}

static POOL: LeasePool = LeasePool {
    lock: Lock::new(),
    arena: Arena::new(),
    all: AtomicPtr::new(null_mut()),
    free: AtomicPtr::new(null_mut()),
    made: AtomicUsize::new(0),
};

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    SETTLING.iter().for_each(|lock| each(&lock.0));
    each(&POOL.lock);
    each(POOL.arena.lock());
}

/// The number of bytes of all leases.
pub(crate) fn bytes() -> usize {
    made() * size_of::<Lease>()
}

/// The number of leases: the highest number of threads at one time, or less.
#[inline(always)]
pub(crate) fn made() -> usize {
    POOL.made.load(Ordering::Relaxed)
}

/// The seed that determines which blocks samples by bytes choose.
static SEED: AtomicU64 = AtomicU64::new(0);
/// Whether the options contain the seed.
static SEED_IS_SET: AtomicBool = AtomicBool::new(false);

/// Registers the pool for the end of threads. Stores the function that counts events, and the seed: from the options,
/// or a new seed. Called once, before the first lease.
pub(crate) fn start(count: fn(&PendingEvents), seed: Option<u64>) {
    COUNT.get_or_init(|| count);
    SEED.store(seed.unwrap_or_else(process_seed::draw), Ordering::Relaxed);
    SEED_IS_SET.store(seed.is_some(), Ordering::Relaxed);
    thread_end::start(thread_ends);
}

/// The seed of this process.
pub(crate) fn seed() -> u64 {
    SEED.load(Ordering::Relaxed)
}

/// Runs when a thread ends. Destructors of other keys may run after this one, and free blocks of the thread. So the
/// thread keeps its lease until the last round of destructors.
extern "C" fn thread_ends(pointer: *mut c_void) {
    let slot = slot();
    // A signal may interrupt this thread, and its handler may allocate.
    let _inside = Inside::deeper();
    let round = slot.end_rounds.get() + 1;
    if round < thread_end::ROUNDS {
        slot.end_rounds.set(round);
        return thread_end::watch(pointer);
    }
    slot.ending.set(true);
    // SAFETY: the pointer is null or points to this thread's lease, which the arena never unmaps.
    if let Some(lease) = unsafe { slot.state.replace(null_mut()).cast::<Lease>().as_ref() } {
        give_back(lease, false);
    }
}

/// Returns a lease to the pool. `again` means that the thread had already ended when it got this lease.
fn give_back(lease: &'static Lease, again: bool) {
    lease.hand_over();
    if lease.pending.is_observed() {
        let _held = lease.hold();
        observers::thread_ended(lease.source(), again);
    }
    lease.thread_pointer.store(0, Ordering::Relaxed);
    let _held = POOL.lock.hold();
    lease.next_free.store(POOL.free.load(Ordering::Relaxed), Ordering::Relaxed);
    POOL.free.store(core::ptr::from_ref(lease).cast_mut(), Ordering::Relaxed);
}

impl Lease {
    /// Runs `body` with the state. The caller is [`Inside`], on the thread that leased the state.
    #[inline(always)]
    pub(crate) fn with_state<T>(&self, body: impl FnOnce(&mut ThreadState) -> T) -> T {
        // SAFETY: this thread leased the state, and the guard lets only one caller on the thread use it.
        body(unsafe { &mut *self.state.get() })
    }

    /// Settles the pending events. Hands them over if they exceed this thread's part of `allowance`. `allowance` is in
    /// bytes, and all threads share it. Only the thread that leased the events may call this.
    #[inline(never)]
    pub(crate) fn settle(&self, allowance: usize) {
        let _held = self.hold();
        self.show_list();
        self.settle_held(allowance);
    }

    /// Like [`settle`](Self::settle), with an event that does not fit into the list: `add` adds the event first.
    pub(crate) fn settle_after(
        &self,
        allowance: usize,
        event: impl FnOnce() -> TableEvent,
        add: impl FnOnce(&PendingEvents),
    ) {
        let _held = self.hold();
        self.show(event);
        add(&self.pending);
        self.settle_held(allowance);
    }

    fn settle_held(&self, allowance: usize) {
        if self.pending.settle(allowance / made().max(1)) {
            self.count();
        }
        #[cfg(target_os = "linux")]
        engine_threads::continue_waiting();
        #[cfg(target_os = "linux")]
        late_start::start_if_due();
    }

    /// Hands the pending events over. Only the thread that leased the events may call this, or a caller that prevents
    /// this thread from using the events.
    fn hand_over(&self) {
        let _held = self.hold();
        self.show_list();
        self.pending.settle(0);
        self.count();
    }

    /// Passes an event that does not fit into the list to the observers that are on.
    pub(crate) fn observe(&self, event: impl FnOnce() -> TableEvent) {
        if self.pending.is_observed() {
            let _held = self.hold();
            self.show(event);
        }
    }

    /// Like [`observe`](Self::observe), for a caller that holds the lock.
    fn show(&self, event: impl FnOnce() -> TableEvent) {
        if self.pending.is_observed() {
            self.show_list();
            observers::observe(self.source(), &EventBatch::One(event()));
        }
    }

    /// Hands the list to observers. The caller holds the lock.
    #[inline]
    fn show_list(&self) {
        if self.pending.is_observed()
            && let Some(list) = self.pending.take_list()
        {
            observers::observe(self.source(), &EventBatch::List(list));
            if observers::many_wait() {
                observers::take_alone();
            }
        }
    }

    fn source(&self) -> EventSource {
        EventSource {
            lease: Some(self.number.load(Ordering::Relaxed)),
            thread: self.thread.load(Ordering::Relaxed),
            system_id: self.system_id.load(Ordering::Relaxed),
        }
    }

    /// Records that the lease now belongs to this thread.
    fn begin_thread(&self) {
        let slot = slot();
        let is_new = slot.thread.get() == 0;
        if is_new {
            slot.thread.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
        }
        self.thread.store(slot.thread.get(), Ordering::Relaxed);
        self.thread_pointer.store(thread_pointer(), Ordering::Relaxed);
        let observed = observers::any();
        self.system_id.store(if observed { system_id() } else { 0 }, Ordering::Relaxed);
        if observed && is_new {
            observers::thread_began();
        }
        if observed || self.pending.is_observed() {
            let _held = self.hold();
            self.pending.set_observed(observers::any());
        }
    }

    /// Hands settled events over, and the events of a list that `settle` did not empty.
    fn count(&self) {
        if let Some(count) = COUNT.get() {
            count(&self.pending);
        }
        self.pending.forget();
    }

    fn hold(&self) -> LockGuard<'_> {
        SETTLING[self.number.load(Ordering::Relaxed) % SETTLING.len()].0.hold()
    }
}

/// This thread's lease, if it has one. The caller is [`Inside`].
#[inline(always)]
pub(crate) fn lease() -> Option<&'static Lease> {
    // SAFETY: the pointer is null or points to this thread's lease, which the arena never unmaps.
    unsafe { slot().state.get().cast::<Lease>().as_ref() }
}

/// Runs `body` with this thread's lease; `None` if there is no memory for it. The caller is [`Inside`].
#[inline(always)]
pub(crate) fn with_lease<T>(body: impl FnOnce(&Lease) -> T) -> Option<T> {
    match lease() {
        Some(lease) => Some(body(lease)),
        None => with_new_lease(body),
    }
}

/// Runs `body` with this thread's state; `None` if there is no memory for it. The caller is [`Inside`].
#[inline(always)]
pub(crate) fn with_state<T>(body: impl FnOnce(&mut ThreadState) -> T) -> Option<T> {
    with_lease(|lease| lease.with_state(body))
}

#[cold]
#[inline(never)]
fn with_new_lease<T>(body: impl FnOnce(&Lease) -> T) -> Option<T> {
    let slot = slot();
    let lease = new_lease()?;
    // SAFETY: this thread leased it above, so no other thread uses it.
    unsafe { &mut *lease.state.get() }.stack.forget();
    lease.begin_thread();
    if slot.ending.get() {
        let result = body(lease);
        give_back(lease, true);
        return Some(result);
    }
    let pointer = core::ptr::from_ref(lease).cast_mut().cast();
    slot.state.set(pointer);
    {
        // The system may allocate memory for this registration.
        let _deeper = Inside::deeper();
        thread_end::watch(pointer);
    }
    Some(body(lease))
}

#[cold]
fn new_lease() -> Option<&'static Lease> {
    let _held = POOL.lock.hold();
    let free = POOL.free.load(Ordering::Relaxed);
    // SAFETY: the pointer is null or points to a lease, which the arena never unmaps.
    if let Some(lease) = unsafe { free.as_ref() } {
        POOL.free.store(lease.next_free.load(Ordering::Relaxed), Ordering::Relaxed);
        return Some(lease);
    }
    let fresh = POOL.arena.take(size_of::<Lease>()).cast::<Lease>();
    // SAFETY: the pointer is null or points to zeroed bytes, which are a valid lease with an unseeded sampler.
    let lease = unsafe { fresh.as_ref() }?;
    let made = POOL.made.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the lease is new, and no other thread has its address.
    let state = unsafe { &mut *lease.state.get() };
    state.sampler = Sampler::for_thread(made);
    state.byte_sampler = ByteSampler::for_thread(seed(), made);
    lease.number.store(made, Ordering::Relaxed);
    lease.next.store(POOL.all.load(Ordering::Relaxed), Ordering::Relaxed);
    POOL.all.store(fresh, Ordering::Release);
    Some(lease)
}

/// All leases, in use or free.
fn leases() -> impl Iterator<Item = &'static Lease> {
    // SAFETY: the pointer is null or points to a lease, which the arena never unmaps.
    let at = |place: &AtomicPtr<Lease>| unsafe { place.load(Ordering::Acquire).as_ref() };
    core::iter::successors(at(&POOL.all), move |lease| at(&lease.next))
}

/// Calls `each` with the thread pointer and the last stack of each thread with a lease. Only a copy of the process, in
/// which no other thread runs, may call this.
pub(crate) fn for_each_stack(each: &mut dyn FnMut(usize, &ThreadStack)) {
    for lease in leases() {
        let thread = lease.thread_pointer.load(Ordering::Relaxed);
        if thread != 0 {
            // SAFETY: the thread that leased the state does not exist in this process.
            each(thread, unsafe { &(*lease.state.get()).stack });
        }
    }
}

/// The thread pointer of each thread with a lease.
#[cfg(target_os = "linux")]
pub(crate) fn pointers() -> impl Iterator<Item = usize> {
    leases().map(|lease| lease.thread_pointer.load(Ordering::Relaxed)).filter(|pointer| *pointer != 0)
}

/// Calls `each` with the events and counts of every thread so far, while that thread does not settle.
pub(crate) fn for_each_pending(mut each: impl FnMut(&PendingEvents)) {
    for lease in leases() {
        let _held = lease.hold();
        each(&lease.pending);
    }
}

/// Sets the observer of a place, and hands the events to it from now on.
pub(crate) fn observe(place: ObserverPlace, observer: &'static dyn Observer) {
    observers::switch_on(place, observer);
    set_observed();
}

/// Stops handing events to the observer of a place.
pub(crate) fn stop_observing(place: ObserverPlace) {
    observers::switch_off(place);
    set_observed();
}

fn set_observed() {
    for lease in leases() {
        let _held = lease.hold();
        lease.pending.set_observed(observers::any());
    }
}

/// Hands the events of all threads to the observers. Calls `each` for the number of every lease, with its lock held.
/// The caller is [`Inside`].
pub(crate) fn hand_over_all(mut each: impl FnMut(usize)) {
    for lease in leases() {
        let _held = lease.hold();
        lease.show_list();
        each(lease.number.load(Ordering::Relaxed));
    }
    observers::take_alone();
}

/// Frees the leases of threads that do not exist in the child of a fork. The child calls this.
pub(crate) fn forget_other_threads() {
    // The events so far belong to the parent.
    leases().for_each(|lease| lease.pending.skip_list());
    if let Some(lease) = lease().filter(|lease| lease.pending.is_observed()) {
        lease.system_id.store(system_id(), Ordering::Relaxed);
        // An observer may need the first event soon.
        lease.pending.settle_soon();
    }
    observers::after_fork_in_child();
    if !SEED_IS_SET.load(Ordering::Relaxed) {
        // With the same seed, children that run the same code would choose the same blocks.
        SEED.store(process_seed::for_child(seed()), Ordering::Relaxed);
        for lease in leases() {
            let number = lease.number.load(Ordering::Relaxed);
            // SAFETY: the place is valid as long as the lease, and the child has only this thread.
            let sampler = unsafe { &raw mut (*lease.state.get()).byte_sampler };
            // SAFETY: as above. If a handler that interrupted a draw has forked, the draw continues from the new
            // state.
            unsafe { sampler.write(ByteSampler::for_thread(seed(), number)) };
        }
        slot().session.set(0);
    }
    let mine = slot().state.get().cast::<Lease>();
    POOL.free.store(null_mut(), Ordering::Relaxed);
    for lease in leases().filter(|lease| !core::ptr::eq(*lease, mine)) {
        give_back(lease, false);
    }
}
