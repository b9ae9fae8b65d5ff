//! The guard against re-entry: what this thread does in the engine, and since where on its stack.
//!
//! A handler of a signal finds the guard set if it has interrupted the engine. It may never come back: recovering
//! from an overflow of the stack, programs jump out of handlers. So the guard knows the stack pointer of whoever
//! set it first. Whoever finds it set with a frame further out, on the same stack, knows that nobody is inside.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use super::slot;
use dmd_unwind::StackRange;

/// In a hook, which causes no allocation: whatever is allocated meanwhile is that of a signal's handler.
const HOOK: u32 = 1 << 31;
/// So much for each call of an allocator that has a door of its own: what other doors see meanwhile is part of
/// that block.
const ALLOCATOR: u32 = 1 << 16;
/// So much for each time that what is allocated is the engine's own.
const OWN: u32 = 1;

/// A signal's handler runs at least so far below what it has interrupted: the kernel puts the registers between,
/// which take twice as much.
const HANDLER: usize = 512;

/// What a thread is doing in the engine. All zero: nothing.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Guard {
    /// Sums of the constants above. Read by other copies of the library: see `door`.
    inside: Cell<u32>,
    /// The stack pointer of whoever was the first to set it; 0 if that is not known.
    at: Cell<usize>,
}

/// How often the engine was left by a jump out of a hook: a block each is not known.
static JUMPS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn jumps() -> &'static AtomicU64 {
    &JUMPS
}

impl Guard {
    /// Whether this thread is inside.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.inside.get() != 0 && !self.was_left(0)
    }

    /// As [`is_set`](Self::is_set), for a hook. A hook calls no hook: if one is interrupted by a handler that calls
    /// another, that is not near.
    #[inline(always)]
    fn is_set_for_hook(&self) -> bool {
        let inside = self.inside.get();
        inside != 0 && !self.was_left(if inside == HOOK { HANDLER } else { 0 })
    }

    /// Whether a block that is new passes by: it is the engine's own, or a part of one that another door sees.
    #[inline(always)]
    pub(crate) fn passes_by(&self) -> bool {
        self.inside.get() & !HOOK != 0 && !self.was_left(0)
    }

    /// Whether what is allocated is the engine's own.
    #[inline(always)]
    pub(crate) fn is_for_the_engine(&self) -> bool {
        self.inside.get() & (ALLOCATOR - 1) != 0
    }

    /// The counter, for copies of the library that know no more of it.
    pub(crate) fn counter(&self) -> &Cell<u32> {
        &self.inside
    }

    /// Nobody is inside, whatever was found: who was is not coming back.
    pub(crate) fn clear(&self) {
        self.inside.set(0);
        self.at.set(0);
    }

    /// Clears the guard and tells so, if whoever set it has been left by a jump: the stack ends further out than it did,
    /// or not so far further in as it would.
    #[cold]
    #[inline(never)]
    fn was_left(&self, near: usize) -> bool {
        let (at, sp) = (self.at.get(), stack_pointer());
        if at == 0 || sp + near <= at {
            return false;
        }
        // A handler may run on another stack, which lies higher, and so may a coroutine that it went to.
        let mut stack = StackRange::new();
        if at.abs_diff(sp) >= HANDLER && !(stack.covers(sp) && stack.covers(at)) {
            return false;
        }
        if self.inside.get() & HOOK != 0 {
            JUMPS.fetch_add(1, Ordering::Relaxed);
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

    /// Runs an allocator of which another door sees the blocks.
    #[inline(always)]
    pub(crate) fn around<T>(&self, allocator: impl FnOnce() -> T) -> T {
        let before = self.set(self.inside.get() + ALLOCATOR);
        let result = allocator();
        self.reset(before);
        result
    }
}

/// Being inside the engine, until dropped. Made in the frame of whoever holds it, so that all that is called meanwhile
/// lies below the stack pointer that the guard knows.
pub(crate) struct Inside {
    guard: &'static Guard,
    before: u32,
}

impl Inside {
    /// In a hook. `None` if this thread is inside already: a signal's handler has interrupted it.
    #[inline(always)]
    pub(crate) fn enter() -> Option<Self> {
        let guard = &slot().guard;
        if guard.is_set_for_hook() {
            return None;
        }
        Some(Self { guard, before: guard.set(HOOK) })
    }

    /// In a hook, whether or not this thread is inside.
    #[inline(always)]
    pub(crate) fn anyway() -> Self {
        let guard = &slot().guard;
        guard.is_set();
        Self { guard, before: guard.set(guard.inside.get() | HOOK) }
    }

    /// Once more, whether or not this thread is inside; what is allocated is the engine's own.
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

/// Where the stack ends now.
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
