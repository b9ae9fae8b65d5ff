//! Which memory a walk may read: only words between the stack pointer and the end of the stack that it
//! runs on, so that a wrong frame ends a walk and not the process.
//!
//! A thread's own stack is found once, from what the C library knows of it: see [`own`](crate::own). The main
//! thread's is the kernel's, and reaches without a hole from the stack pointer to what the kernel put above it;
//! each page between is tried once. No mapping of the program's touches it, as the kernel keeps a gap below. Other
//! stacks (of signal handlers, of coroutines) may be unmapped at any time, so they are tried anew in each walk,
//! page by page as far as frames reach.

use crate::own::stack_of_this_thread;
use crate::sys::{auxiliary, is_readable};

const PAGE: usize = 4096;
/// How many pages a walk tries on a stack that is not the thread's own.
const PAGES_PER_WALK: usize = 256;
/// How far the main thread's stack is thought to reach: 1 GiB.
const LONGEST: usize = 1 << 30;

/// What is known of one thread's own stack. Belongs to the thread; a new thread needs a new one. All zero is a
/// new one.
#[derive(Clone, Copy, Debug)]
pub struct StackRange {
    low: usize,
    high: usize,
    /// The C library was asked.
    asked: bool,
    /// It knew: the range is all of the stack.
    whole: bool,
    /// An address between the main thread's stack and others, where nothing was.
    hole: usize,
}

impl StackRange {
    /// Nothing is known yet.
    pub const fn new() -> StackRange {
        StackRange { low: 0, high: 0, asked: false, whole: false, hole: 0 }
    }

    /// A stack that is known to reach from `low` to `high`.
    pub(crate) const fn over(low: usize, high: usize) -> StackRange {
        StackRange { low, high: high & !7, asked: true, whole: true, hole: 0 }
    }

    /// Does the range hold `sp`, if need be after growing down to it?
    #[inline(always)]
    pub fn covers(&mut self, sp: usize) -> bool {
        (self.low..self.high).contains(&sp) || self.grow(sp)
    }

    /// Do all words from `low` up to `high` lie in it?
    #[inline]
    pub(crate) fn holds(&self, low: usize, high: usize) -> bool {
        self.low <= low && low <= high && high <= self.high
    }

    /// The word at `address`.
    ///
    /// # Safety
    ///
    /// It is a multiple of 8, lies above the stack pointer of the running thread, whose range this is, and the
    /// range [holds](Self::holds) both.
    #[inline(always)]
    pub(crate) unsafe fn word(&self, address: usize) -> usize {
        // SAFETY: a multiple of 8 between the stack pointer of the running thread and the end of its stack, which the
        // caller has checked: that memory is in use.
        unsafe { read(address) }
    }

    #[cold]
    fn grow(&mut self, sp: usize) -> bool {
        if !self.asked {
            self.asked = true;
            if let Some((low, high)) = stack_of_this_thread() {
                *self = StackRange::over(low, high);
            }
        }
        if self.whole {
            return (self.low..self.high).contains(&sp);
        }
        let known = self.high != 0;
        // Deeper than ever before on the same stack, perhaps.
        let end = if known { self.low } else { auxiliary(libc::AT_RANDOM) & !7 };
        if end.checked_sub(sp).is_none_or(|distance| distance > LONGEST) {
            return false;
        }
        if sp < self.hole && !is_readable(self.hole) {
            return false;
        }
        let low = page_of(sp);
        // From below: where this is another stack, its end is near.
        if let Some(hole) = (low..end).step_by(PAGE).find(|page| !is_readable(*page)) {
            self.hole = hole;
            return false;
        }
        self.high = if known { self.high } else { end };
        self.low = low;
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
pub(crate) struct Memory<'a> {
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
    pub(crate) fn new(own: &'a mut StackRange, sp: usize) -> Memory<'a> {
        let (low, high) = if own.covers(sp) { (own.low, own.high) } else { (sp, page_of(sp) + PAGE) };
        Memory { own, low, high, budget: PAGES_PER_WALK }
    }

    #[inline(always)]
    pub(crate) fn high(&self) -> usize {
        self.high
    }

    /// Goes on on the stack of `sp`, of which nothing is known: what a signal interrupted.
    pub(crate) fn enter(&mut self, sp: usize) -> Option<()> {
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
    pub(crate) fn reach(&mut self, end: usize) -> bool {
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
    pub(crate) fn read(&mut self, address: usize) -> Option<usize> {
        let end = address.checked_add(8)?;
        if address < self.low || !address.is_multiple_of(8) || (end > self.high && !self.reach(end)) {
            return None;
        }
        Some(self.word(address))
    }

    /// The word at `address`, which the caller has found to be a multiple of 8 between the stack pointer
    /// and [`Memory::high`].
    #[inline(always)]
    pub(crate) fn word(&self, address: usize) -> usize {
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
    // SAFETY: aligned and mapped, which both callers have checked. Volatile: it is memory of the program, and changes
    // behind our back.
    unsafe { word.read_volatile() }
}
