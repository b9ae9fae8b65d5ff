//! The guard against re-entry. It records what this thread does in the engine, and the stack pointer at which it
//! entered.
//!
//! A signal handler that interrupts the engine finds the guard set. The handler may never return: programs jump out of
//! it when they recover from a stack overflow. So the guard keeps the stack pointer of the code that set it first. If
//! code in an outer frame of the same stack finds the guard set, a jump has left the engine.

use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::{StackRange, slot};

/// A hook is running. A hook makes no allocation: a block that is allocated during this time belongs to a signal
/// handler.
const HOOK: u32 = 1 << 31;
/// Added for each call of an allocator with its own hook. During the call, other hooks ignore new blocks, because these
/// blocks are parts of the block that the call returns.
const ALLOCATOR: u32 = 1 << 16;
/// Added for each nested call during which new blocks belong to the engine itself.
const OWN: u32 = 1;

/// A signal handler runs at least this number of bytes below the code that it interrupted. Between the handler and this
/// code, the kernel stores the registers, which take twice as many bytes.
const HANDLER: usize = 512;

/// The work of a thread in the engine. All zero while the thread is not inside.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Guard {
    /// The sum of the constants above. Other copies of the library read and change it: see `guard` in
    /// `memory_reporter::engine_abi`.
    inside: Cell<u32>,
    /// The stack pointer of the code that set the guard first; 0 if it is unknown.
    at: Cell<usize>,
}

/// The function that frees the locks of this thread. Null until `on_jump` stores it.
static RELEASE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Stores the function that frees the locks of a thread: a jump may have left code that holds locks.
pub(crate) fn on_jump(release: fn()) {
    RELEASE.store(release as *mut (), Ordering::Relaxed);
}

/// The number of jumps that left a hook. Each of them lost one block.
static JUMPS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn jumps() -> &'static AtomicU64 {
    &JUMPS
}

impl Guard {
    /// Whether this thread is inside the engine.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.inside.get() != 0 && !self.was_left(0)
    }

    /// Like [`is_set`](Self::is_set), for a hook. A hook never calls a hook. If a signal handler interrupts a hook and
    /// calls another hook, the distance between the two frames is at least [`HANDLER`].
    #[inline(always)]
    fn is_set_for_hook(&self) -> bool {
        let inside = self.inside.get();
        inside != 0 && !self.was_left(if inside == HOOK { HANDLER } else { 0 })
    }

    /// Whether a new block must not be recorded: it belongs to the engine, or it is part of a block that another hook
    /// records.
    #[inline(always)]
    pub(crate) fn passes_by(&self) -> bool {
        self.inside.get() & !HOOK != 0 && !self.was_left(0)
    }

    /// Whether a new block is the engine's own.
    #[inline(always)]
    pub(crate) fn is_for_the_engine(&self) -> bool {
        self.inside.get() & (ALLOCATOR - 1) != 0
    }

    /// Whether this thread runs code of the engine, and not only an allocator that a hook has called.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_in_engine(&self) -> bool {
        self.inside.get() & (HOOK | (ALLOCATOR - 1)) != 0 && !self.was_left(0)
    }

    /// Whether the guard is set, even if a jump has left the call that set it.
    #[inline(always)]
    pub(crate) fn is_used(&self) -> bool {
        self.inside.get() != 0
    }

    /// Clears the guard: the code that set it will never return.
    pub(crate) fn clear(&self) {
        self.inside.set(0);
        self.at.set(0);
    }

    /// Clears the guard and returns true if a jump left the code that set it. In this case the stack pointer is above
    /// the pointer in the guard, or less than `near` below it.
    #[cold]
    #[inline(never)]
    fn was_left(&self, near: usize) -> bool {
        let (at, sp) = (self.at.get(), stack_pointer());
        if at == 0 || sp + near <= at {
            return false;
        }
        // A handler, or a coroutine that it switched to, may run on another stack at higher addresses: then no jump has
        // left the call that set the guard.
        let mut stack = StackRange::new();
        if at.abs_diff(sp) >= HANDLER && !(stack.covers(sp) && stack.covers(at)) {
            return false;
        }
        if self.inside.get() & HOOK != 0 {
            JUMPS.fetch_add(1, Ordering::Relaxed);
        }
        // The guard stays set until the locks are free: a jump may also leave this code.
        let release = RELEASE.load(Ordering::Relaxed);
        if slot().locks.get() != 0 && !release.is_null() {
            // SAFETY: `on_jump` stores a function of this type.
            let release: fn() = unsafe { core::mem::transmute(release) };
            release();
            slot().locks.set(0);
        }
        self.clear();
        true
    }

    #[inline(always)]
    fn set(&self, inside: u32) -> u32 {
        let before = self.inside.replace(inside);
        if before == 0 {
            self.at.set(stack_pointer());
        }
        before
    }

    #[inline(always)]
    fn reset(&self, before: u32) {
        self.inside.set(before);
        if before == 0 {
            self.at.set(0);
        }
    }

    /// Runs a call of an allocator. The hook that makes the call records the block, so other hooks ignore blocks of the
    /// call.
    #[inline(always)]
    pub(crate) fn around<T>(&self, allocator: impl FnOnce() -> T) -> T {
        let before = self.set(self.inside.get() + ALLOCATOR);
        let result = allocator();
        self.reset(before);
        result
    }
}

/// Marks the thread as inside the engine, until dropped. It is made in the frame of its owner, so that all calls run
/// below the stack pointer that the guard keeps.
pub(crate) struct Inside {
    guard: &'static Guard,
    before: u32,
}

impl Inside {
    /// Enters from a hook. Returns `None` if this thread is inside: then a signal handler has interrupted it.
    #[inline(always)]
    pub(crate) fn enter() -> Option<Self> {
        let guard = &slot().guard;
        if guard.is_set_for_hook() {
            return None;
        }
        Some(Self { guard, before: guard.set(HOOK) })
    }

    /// Enters from a hook, even if this thread is inside.
    #[inline(always)]
    pub(crate) fn anyway() -> Self {
        let guard = &slot().guard;
        guard.is_set();
        Self { guard, before: guard.set(guard.inside.get() | HOOK) }
    }

    /// Enters one level deeper, even if this thread is inside: new blocks are the engine's own.
    #[inline(always)]
    pub(crate) fn deeper() -> Self {
        let guard = &slot().guard;
        guard.is_set();
        Self { guard, before: guard.set(guard.inside.get() + OWN) }
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        self.guard.reset(self.before);
    }
}

/// The stack pointer, or an address near it.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let here = 0_u8;
    core::hint::black_box(&raw const here).addr()
}

/// The stack pointer.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction only reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction only reads a register.
    unsafe {
        core::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
