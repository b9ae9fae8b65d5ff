//! Which memory a walk may read: only words between the stack pointer and the end of the stack that it
//! runs on, so that a wrong frame ends a walk and not the process.
//!
//! A thread's own stack is found once: it reaches without a hole from the stack pointer to the thread's
//! control block, or on the main thread to what the kernel put above it; each page between is tried once.
//! Other stacks (of signal handlers, of coroutines) may be unmapped at any time, so they are tried anew in
//! each walk, page by page as far as frames reach.

use super::sys::{auxiliary, is_readable, thread_pointer};

const PAGE: usize = 4096;
/// How many pages a walk tries on a stack that is not the thread's own.
const PAGES_PER_WALK: usize = 256;
/// How far above the stack pointer the end of a thread's own stack, or what is known of it, is looked
/// for: 8 MiB.
const PAGES_TO_END: usize = 2048;
/// After so many walks on other stacks a thread's own is not looked for, nor made larger, any more.
const ATTEMPTS: u32 = 16;

/// What is known of one thread's own stack. Belongs to the thread; a new thread needs a new one.
#[derive(Clone, Copy, Debug)]
pub struct StackRange {
    low: usize,
    high: usize,
    attempts: u32,
}

impl StackRange {
    /// Nothing is known yet.
    pub const fn new() -> StackRange {
        StackRange { low: 0, high: 0, attempts: 0 }
    }

    /// A stack that is known to reach from `low` to `high`.
    pub(super) const fn over(low: usize, high: usize) -> StackRange {
        StackRange { low, high: high & !7, attempts: ATTEMPTS }
    }

    /// Does the range hold `sp`, if need be after growing down to it?
    #[inline(always)]
    fn covers(&mut self, sp: usize) -> bool {
        (self.low..self.high).contains(&sp) || self.grow(sp)
    }

    /// Do all words from `low` up to `high` lie in it?
    pub(super) fn holds(&self, low: usize, high: usize) -> bool {
        self.low <= low && low <= high && high <= self.high
    }

    /// The word at `address`.
    ///
    /// # Safety
    ///
    /// It is a multiple of 8, and the range, which is that of the running thread, [holds](Self::holds) it.
    #[inline(always)]
    pub(super) unsafe fn word(&self, address: usize) -> usize {
        // SAFETY: the caller's promise; a thread's own stack stays mapped.
        unsafe { read(address) }
    }

    #[cold]
    fn grow(&mut self, sp: usize) -> bool {
        if self.attempts >= ATTEMPTS {
            return false;
        }
        let known = self.high != 0;
        let end = if known {
            // Deeper than ever before on the same stack, perhaps.
            self.low
        } else {
            let ends = [thread_pointer(), auxiliary(libc::AT_RANDOM)];
            ends.into_iter().filter(|&end| end > sp).min().unwrap_or(0)
        };
        // From below: where this is another stack, its end is near.
        let near = end.checked_sub(sp).is_some_and(|distance| distance <= PAGES_TO_END * PAGE);
        let low = page_of(sp);
        if !near || !(low..end).step_by(PAGE).all(is_readable) {
            self.attempts += u32::from(near || !known);
            return false;
        }
        let high = if known { self.high } else { end & !7 };
        *self = StackRange { low, high, attempts: self.attempts };
        true
    }
}

impl Default for StackRange {
    fn default() -> StackRange {
        StackRange::new()
    }
}

fn page_of(address: usize) -> usize {
    address & !(PAGE - 1)
}

/// The memory that one walk may read.
#[derive(Debug)]
pub(super) struct Memory<'a> {
    own: &'a mut StackRange,
    low: usize,
    /// The end; a multiple of 8.
    high: usize,
    /// Pages that may still be tried.
    budget: usize,
}

impl<'a> Memory<'a> {
    /// For a walk that starts at `sp`, on the stack that this thread runs on.
    #[inline(always)]
    pub(super) fn new(own: &'a mut StackRange, sp: usize) -> Memory<'a> {
        let (low, high) = if own.covers(sp) { (own.low, own.high) } else { (sp, page_of(sp) + PAGE) };
        Memory { own, low, high, budget: PAGES_PER_WALK }
    }

    #[inline(always)]
    pub(super) fn high(&self) -> usize {
        self.high
    }

    /// Goes on on the stack of `sp`, of which nothing is known: what a signal interrupted.
    pub(super) fn enter(&mut self, sp: usize) -> Option<()> {
        if (self.low..self.high).contains(&sp) {
            return Some(());
        }
        if self.own.covers(sp) {
            (self.low, self.high) = (self.own.low, self.own.high);
            return Some(());
        }
        self.budget = self.budget.checked_sub(1)?;
        let page = page_of(sp);
        if !is_readable(page) {
            return None;
        }
        (self.low, self.high) = (page, page + PAGE);
        Some(())
    }

    /// Makes all up to `end` readable, if it is.
    #[cold]
    pub(super) fn reach(&mut self, end: usize) -> bool {
        if (self.own.low..self.own.high).contains(&self.low) {
            // There is nothing of the thread's above its own stack.
            return end <= self.high;
        }
        while self.high < end {
            if self.budget == 0 || !is_readable(self.high) {
                return false;
            }
            self.budget -= 1;
            self.high += PAGE;
        }
        true
    }

    /// The word at `address`.
    #[inline]
    pub(super) fn read(&mut self, address: usize) -> Option<usize> {
        let end = address.checked_add(8)?;
        if address < self.low || !address.is_multiple_of(8) || (end > self.high && !self.reach(end)) {
            return None;
        }
        Some(self.word(address))
    }

    /// The word at `address`, which the caller has found to be a multiple of 8 between the stack pointer
    /// and [`Memory::high`].
    #[inline(always)]
    pub(super) fn word(&self, address: usize) -> usize {
        // SAFETY: aligned, and inside of a stack that is mapped: this thread runs on it, or the pages
        // were tried.
        unsafe { read(address) }
    }
}

/// # Safety
///
/// The address is a multiple of 8, and mapped.
#[inline(always)]
unsafe fn read(address: usize) -> usize {
    let word = core::ptr::with_exposed_provenance::<usize>(address);
    // SAFETY: the caller's promise. Volatile: it is memory of the program, and changes behind our back.
    unsafe { word.read_volatile() }
}
