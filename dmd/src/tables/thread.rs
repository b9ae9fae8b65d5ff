//! The memory in which each thread takes its stacks.
//!
//! A thread leases it from a pool when it records its first block, and returns it when it ends, so that memory does
//! not grow with dead threads.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::sampler::Sampler;
use crate::system::errno::keeping_errno;
use crate::system::lock::Lock;
use crate::system::memory::Arena;
use crate::system::slot::{Inside, slot};
use crate::tables::stack::ThreadStack;

/// A thread's state for recording blocks. Only the thread that leased it touches it, inside the engine.
pub(crate) struct ThreadState {
    pub(crate) sampler: Sampler,
    pub(crate) stack: ThreadStack,
    /// Usable bytes of small blocks since the engine recorded one for them all.
    pub(crate) below: usize,
    next: AtomicPtr<ThreadState>,
    next_free: AtomicPtr<ThreadState>,
}

struct Pool {
    lock: Lock,
    arena: Arena,
    all: AtomicPtr<ThreadState>,
    free: AtomicPtr<ThreadState>,
    made: AtomicUsize,
    /// The `pthread_key_t` plus 1; 0 if there is none.
    key: AtomicU32,
}

static POOL: Pool = Pool {
    lock: Lock::new(),
    arena: Arena::new(),
    all: AtomicPtr::new(null_mut()),
    free: AtomicPtr::new(null_mut()),
    made: AtomicUsize::new(0),
    key: AtomicU32::new(0),
};

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(&POOL.lock);
    each(POOL.arena.lock());
}

/// Bytes of all thread states.
pub(crate) fn bytes() -> usize {
    POOL.made.load(Ordering::Relaxed) * size_of::<ThreadState>()
}

/// Makes the key by which the pool learns of the end of a thread. Called once, before the first lease.
pub(crate) fn start() {
    let key = UnsafeCell::new(0);
    // SAFETY: `key` is a place for the key, and the destructor touches its own thread only.
    if unsafe { libc::pthread_key_create(key.get(), Some(thread_ends)) } == 0 {
        POOL.key.store(key.into_inner() + 1, Ordering::Release);
    }
}

extern "C" fn thread_ends(_: *mut c_void) {
    let slot = slot();
    slot.ending.set(true);
    // A signal may interrupt this thread, and its handler may allocate.
    let _inside = Inside::deeper();
    let state = slot.state.replace(null_mut());
    give_back(state.cast());
}

fn give_back(state: *mut ThreadState) {
    if state.is_null() {
        return;
    }
    let _held = POOL.lock.hold();
    // SAFETY: the arena never unmaps states, and the thread that leased this one uses it no more.
    unsafe { &*state }.next_free.store(POOL.free.load(Ordering::Relaxed), Ordering::Relaxed);
    POOL.free.store(state, Ordering::Relaxed);
}

/// Runs `body` with this thread's state; `None` if there is no memory for one. The caller is [`Inside`].
#[inline]
pub(crate) fn with_state<T>(body: impl FnOnce(&mut ThreadState) -> T) -> Option<T> {
    let state = slot().state.get().cast::<ThreadState>();
    if state.is_null() {
        return with_new_state(body);
    }
    // SAFETY: this thread leased the state, and the guard lets only one caller on the thread use it.
    Some(body(unsafe { &mut *state }))
}

#[cold]
#[inline(never)]
fn with_new_state<T>(body: impl FnOnce(&mut ThreadState) -> T) -> Option<T> {
    let slot = slot();
    let state = lease();
    // SAFETY: null, or leased above, so that nobody else uses it.
    let fresh = unsafe { state.as_mut() }?;
    fresh.stack.forget();
    if slot.ending.get() {
        let result = body(fresh);
        give_back(state);
        return Some(result);
    }
    slot.state.set(state.cast());
    if let Some(key) = POOL.key.load(Ordering::Acquire).checked_sub(1) {
        // The C library may allocate a list for the key.
        let _deeper = Inside::deeper();
        keeping_errno(|| {
            // SAFETY: `start` made the key, and nobody deletes it.
            unsafe { libc::pthread_setspecific(key, state.cast()) };
        });
    }
    Some(body(fresh))
}

#[cold]
fn lease() -> *mut ThreadState {
    let _held = POOL.lock.hold();
    let free = POOL.free.load(Ordering::Relaxed);
    // SAFETY: null, or a state, which the arena never unmaps.
    if let Some(state) = unsafe { free.as_ref() } {
        POOL.free.store(state.next_free.load(Ordering::Relaxed), Ordering::Relaxed);
        return free;
    }
    let state = POOL.arena.take(size_of::<ThreadState>()).cast::<ThreadState>();
    if state.is_null() {
        return null_mut();
    }
    let made = POOL.made.fetch_add(1, Ordering::Relaxed);
    // SAFETY: zeroed bytes are a state with an unseeded sampler, and nobody else has seen them.
    let fresh = unsafe { &mut *state };
    fresh.sampler = Sampler::of_thread(made);
    fresh.next.store(POOL.all.load(Ordering::Relaxed), Ordering::Relaxed);
    POOL.all.store(state, Ordering::Relaxed);
    state
}

/// For the child of a fork: frees the states of threads that are not here any more.
pub(crate) fn forget_other_threads() {
    let mine = slot().state.get().cast::<ThreadState>();
    POOL.free.store(null_mut(), Ordering::Relaxed);
    let mut next = POOL.all.load(Ordering::Relaxed);
    // SAFETY: null, or a state, which the arena never unmaps.
    while let Some(state) = unsafe { next.as_ref() } {
        if next != mine {
            state.next_free.store(POOL.free.load(Ordering::Relaxed), Ordering::Relaxed);
            POOL.free.store(next, Ordering::Relaxed);
        }
        next = state.next.load(Ordering::Relaxed);
    }
}
