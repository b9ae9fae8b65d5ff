//! Decides which memory a walk may read: only words between the stack pointer and the end of the current stack. So a
//! wrong frame ends the walk, and does not crash the process.
//!
//! The walker finds a thread's own stack once, from the C library's data: see [`own`](crate::own). For the main
//! thread, the kernel maps the stack without a hole from the stack pointer up to the data that it puts above the
//! stack; the walker checks each page between them once. No other mapping is adjacent to this stack, since the kernel
//! keeps a gap below it. Other stacks (of signal handlers, of coroutines) may be unmapped at any time. So each walk
//! checks their pages again, as far as the frames reach.

use crate::own::stack_of_this_thread;
use crate::sys::{auxiliary, is_readable};

const PAGE: usize = 4096;
/// The maximum number of pages that a walk checks on a stack that is not the thread's own.
const PAGES_PER_WALK: usize = 256;
/// The assumed maximum length of the main thread's stack: 1 GiB.
const LONGEST: usize = 1 << 30;

/// The known limits of one thread's own stack. The value belongs to the thread; a new thread needs a new value. All
/// zeroes are a valid new value.
#[derive(Clone, Copy, Debug)]
pub struct StackRange {
    low: usize,
    high: usize,
    /// Whether the walker has searched the C library's data.
    asked: bool,
    /// Whether the C library had the limits, so that the range is the whole stack.
    whole: bool,
    /// An unmapped address that an earlier call found between the main thread's stack and another stack.
    hole: usize,
}

impl StackRange {
    /// A range with unknown limits.
    pub const fn new() -> StackRange {
        StackRange { low: 0, high: 0, asked: false, whole: false, hole: 0 }
    }

    /// The range of a stack with the known limits `low` and `high`.
    pub(crate) const fn over(low: usize, high: usize) -> StackRange {
        StackRange { low, high: high & !7, asked: true, whole: true, hole: 0 }
    }

    /// Whether the range contains `sp`. First grows the range down to `sp` if necessary.
    #[inline(always)]
    pub fn covers(&mut self, sp: usize) -> bool {
        (self.low..self.high).contains(&sp) || self.grow(sp)
    }

    /// Whether all words from `low` up to `high` are in the range.
    #[inline]
    pub(crate) fn holds(&self, low: usize, high: usize) -> bool {
        self.low <= low && low <= high && high <= self.high
    }

    /// The word at `address`.
    ///
    /// # Safety
    ///
    /// `address` is a multiple of 8 above the stack pointer of the running thread. The range belongs to this thread,
    /// and it [holds](Self::holds) the stack pointer and the word.
    #[inline(always)]
    pub(crate) unsafe fn word(&self, address: usize) -> usize {
        // SAFETY: the caller has checked that `address` is a multiple of 8 between the stack pointer of the running
        // thread and the end of its stack; the kernel keeps that memory mapped while the thread uses it.
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
        // The same stack may have grown deeper than before.
        let end = if known { self.low } else { auxiliary(libc::AT_RANDOM) & !7 };
        if end.checked_sub(sp).is_none_or(|distance| distance > LONGEST) {
            return false;
        }
        if sp < self.hole && !is_readable(self.hole) {
            return false;
        }
        let low = page_of(sp);
        // Search upwards from `sp`: if `sp` is on another stack, the end of that stack is near.
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
pub(crate) struct StackMemory<'a> {
    own: &'a mut StackRange,
    low: usize,
    /// The end of the memory; a multiple of 8.
    high: usize,
    /// The number of pages that the walk may still check.
    budget: usize,
}

impl<'a> StackMemory<'a> {
    /// The memory for a walk that starts at `sp`, on the current stack of this thread.
    #[inline(always)]
    pub(crate) fn new(own: &'a mut StackRange, sp: usize) -> StackMemory<'a> {
        let (low, high) = if own.covers(sp) { (own.low, own.high) } else { (sp, page_of(sp) + PAGE) };
        StackMemory { own, low, high, budget: PAGES_PER_WALK }
    }

    #[inline(always)]
    pub(crate) fn high(&self) -> usize {
        self.high
    }

    /// Continues on the stack of `sp`. This stack may be unknown: a signal handler's frames lead to the interrupted
    /// stack. Returns `None` if the stack is not readable.
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

    /// Like [`Self::enter`], for the stack of a caller. The walker limits the number of these calls, so each such
    /// stack gets the full number of pages that a walk may check.
    pub(crate) fn switch(&mut self, sp: usize) -> Option<()> {
        self.budget = PAGES_PER_WALK;
        self.enter(sp)
    }

    /// Whether the address is in the known part of the current stack.
    pub(crate) fn holds(&self, address: usize) -> bool {
        (self.low..=self.high).contains(&address)
    }

    /// Extends the range up to `end`. Returns false if a part of it is not readable.
    #[cold]
    pub(crate) fn reach(&mut self, end: usize) -> bool {
        let own = self.own.low..self.own.high;
        if own.contains(&self.low) || own.contains(&end) {
            // Memory above the thread's own stack does not belong to the thread, and memory inside of it belongs to no
            // other stack.
            return end <= self.high;
        }
        if end.saturating_sub(self.high) > self.budget * PAGE {
            return false;
        }
        while self.high < end {
            if !is_readable(self.high) {
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

    /// The word at `address`. The caller has checked that `address` is a multiple of 8 between the stack pointer and
    /// [`StackMemory::high`].
    #[inline(always)]
    pub(crate) fn word(&self, address: usize) -> usize {
        // SAFETY: the caller has checked that `address` is aligned and inside the range. The range is mapped: this
        // thread runs on that stack, or `enter` and `reach` checked its pages.
        unsafe { read(address) }
    }
}

/// # Safety
///
/// The address is a multiple of 8, and its word is mapped.
#[inline(always)]
unsafe fn read(address: usize) -> usize {
    let word = core::ptr::with_exposed_provenance::<usize>(address);
    // SAFETY: both callers have checked that `address` is aligned and mapped. The read is volatile, since the program
    // owns this memory and may change it at any time.
    unsafe { word.read_volatile() }
}
