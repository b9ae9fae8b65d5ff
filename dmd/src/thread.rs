//! What each thread has of its own: the guard against re-entry, and the memory to take a stack in.
//!
//! The guard ([`inside`]) lies in a thread-local of the initial-exec model, written in assembly since the language
//! has no word for it: any other model may call `malloc` to make room, or wait for the loader's lock. The larger
//! part is leased from a pool when a thread first records a block, and goes back when the thread ends, so
//! that memory does not grow with dead threads.

mod inside;
mod room;

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::lock::Lock;
use crate::memory::{Arena, keeping_errno};
use crate::sampler::Sampler;
use crate::stack::ThreadStack;

pub(crate) use inside::{Guard, Inside, jumps};
use room::Room;

/// The thread-local part. All zero at first.
#[repr(C)]
pub(crate) struct ThreadSlot {
    pub(crate) guard: Guard,
    /// Holds all locks, for a fork.
    pub(crate) forking: Cell<bool>,
    /// Past the end of its thread-specific data: what it leases it gives back at once.
    ending: Cell<bool>,
    /// How many locks it holds.
    pub(crate) locks: Cell<u16>,
    /// The run of reporters that this thread reports for; 0 if for none.
    pub(crate) run: Cell<u32>,
    /// The reporter of that run; 0 if it is none.
    pub(crate) reporter: Cell<u32>,
    state: Cell<*mut ThreadState>,
    room: Room,
}

const _: () = assert!(size_of::<ThreadSlot>() <= 128);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
core::arch::global_asm!(
    ".pushsection .tbss.dmd_thread_slot,\"awT\",@nobits",
    ".globl dmd_thread_slot",
    ".hidden dmd_thread_slot",
    ".type dmd_thread_slot, %object",
    ".size dmd_thread_slot, 128",
    ".p2align 6",
    "dmd_thread_slot:",
    ".zero 128",
    ".popsection",
);

/// This thread's slot.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) fn slot() -> &'static ThreadSlot {
    let address: *const ThreadSlot;
    // SAFETY: reads the thread pointer and the slot's distance from it.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + dmd_thread_slot@GOTTPOFF]",
            out(reg) address,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: 128 zeroed bytes that only this thread refers to; the reference does not leave the thread.
    unsafe { &*address }
}

/// This thread's slot.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) fn slot() -> &'static ThreadSlot {
    let address: *const ThreadSlot;
    // SAFETY: reads the thread pointer and the slot's distance from it.
    unsafe {
        core::arch::asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:dmd_thread_slot",
            "ldr {1}, [{1}, #:gottprel_lo12:dmd_thread_slot]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: 128 zeroed bytes that only this thread refers to; the reference does not leave the thread.
    unsafe { &*address }
}

/// What a thread needs to record blocks. Only touched by the thread that leased it, inside the engine.
pub(crate) struct ThreadState {
    pub(crate) sampler: Sampler,
    pub(crate) stack: ThreadStack,
    /// Usable bytes of small blocks since one was recorded for them all.
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
    /// `pthread_key_t` plus 1; 0 for none.
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

/// Makes the key by which the end of a thread is noticed. Once, before the first lease.
pub(crate) fn start() {
    let key = UnsafeCell::new(0);
    // SAFETY: the key is written where it is told; the destructor keeps to its thread.
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
    give_back(state);
}

fn give_back(state: *mut ThreadState) {
    if state.is_null() {
        return;
    }
    let _held = POOL.lock.hold();
    // SAFETY: states are never unmapped, and this one has no other user.
    unsafe { &*state }.next_free.store(POOL.free.load(Ordering::Relaxed), Ordering::Relaxed);
    POOL.free.store(state, Ordering::Relaxed);
}

/// Whether the stack has room for what the engine does.
#[inline(always)]
pub(crate) fn has_room() -> bool {
    slot().room.is_below(inside::stack_pointer())
}

/// Runs `body` with this thread's state; `None` if there is no memory for one. The caller is
/// [`Inside`].
#[inline]
pub(crate) fn with_state<T>(body: impl FnOnce(&mut ThreadState) -> T) -> Option<T> {
    let state = slot().state.get();
    if state.is_null() {
        return with_new_state(body);
    }
    // SAFETY: this thread's alone, and the caller is inside the engine, so that nobody is using it.
    Some(body(unsafe { &mut *state }))
}

#[cold]
#[inline(never)]
fn with_new_state<T>(body: impl FnOnce(&mut ThreadState) -> T) -> Option<T> {
    let slot = slot();
    let state = lease();
    // SAFETY: null, or leased above and used by nobody else.
    let fresh = unsafe { state.as_mut() }?;
    fresh.stack.forget();
    if slot.ending.get() {
        let result = body(fresh);
        give_back(state);
        return Some(result);
    }
    slot.state.set(state);
    if let Some(key) = POOL.key.load(Ordering::Acquire).checked_sub(1) {
        // The C library may allocate a list for it.
        let _deeper = Inside::deeper();
        keeping_errno(|| {
            // SAFETY: the key was made at the start and is never deleted.
            unsafe { libc::pthread_setspecific(key, state.cast()) };
        });
    }
    Some(body(fresh))
}

#[cold]
fn lease() -> *mut ThreadState {
    let _held = POOL.lock.hold();
    let free = POOL.free.load(Ordering::Relaxed);
    // SAFETY: states are never unmapped.
    if let Some(state) = unsafe { free.as_ref() } {
        POOL.free.store(state.next_free.load(Ordering::Relaxed), Ordering::Relaxed);
        return free;
    }
    let state = POOL.arena.take(size_of::<ThreadState>()).cast::<ThreadState>();
    if state.is_null() {
        return null_mut();
    }
    let made = POOL.made.fetch_add(1, Ordering::Relaxed);
    // SAFETY: zeroed bytes, which are a state with an unseeded sampler, and nobody else has seen them.
    let fresh = unsafe { &mut *state };
    fresh.sampler = Sampler::of_thread(made);
    fresh.next.store(POOL.all.load(Ordering::Relaxed), Ordering::Relaxed);
    POOL.all.store(state, Ordering::Relaxed);
    state
}

/// In the child of a fork: the states of threads that are not here any more are free.
pub(crate) fn forget_other_threads() {
    let mine = slot().state.get();
    POOL.free.store(null_mut(), Ordering::Relaxed);
    let mut next = POOL.all.load(Ordering::Relaxed);
    // SAFETY: states are never unmapped.
    while let Some(state) = unsafe { next.as_ref() } {
        if next != mine {
            state.next_free.store(POOL.free.load(Ordering::Relaxed), Ordering::Relaxed);
            POOL.free.store(next, Ordering::Relaxed);
        }
        next = state.next.load(Ordering::Relaxed);
    }
}
