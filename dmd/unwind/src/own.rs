//! Where a thread's own stack lies, as the C library noted it when it made the thread.
//!
//! glibc keeps the start of the stack's memory, its size and that of its guard in three words of the thread's
//! control block, which lies at the upper end of that memory. Which words these are is no part of its interface,
//! so they are known by what they say: memory that holds the very words, and ends close behind them. To ask for
//! the thread's attributes instead would wait for a lock that this thread may hold, allocate, and on the main
//! thread read a file. That one has no such words, nor have threads of other C libraries.

use crate::sys::{is_readable, thread_pointer};

const PAGE: usize = 4096;
const WORD: usize = size_of::<usize>();

/// Where the words may lie, from the thread pointer on, or before it.
#[cfg(target_arch = "x86_64")]
mod block {
    pub(crate) const BEFORE: usize = 0;
    pub(crate) const START: usize = 0x300;
    pub(crate) const END: usize = 0x800;
    /// How far behind the thread pointer the stack's memory ends at most: behind the block is nothing.
    pub(crate) const BEHIND: usize = 64 << 10;
}
#[cfg(target_arch = "aarch64")]
mod block {
    pub(crate) const BEFORE: usize = 0x700;
    pub(crate) const START: usize = 0;
    pub(crate) const END: usize = 0x700;
    /// Behind the block lie the thread's static variables.
    pub(crate) const BEHIND: usize = 64 << 20;
}

/// From where to where this thread's stack reaches, without the guard below and the control block above it.
#[cold]
pub(crate) fn stack_of_this_thread() -> Option<(usize, usize)> {
    let pointer = thread_pointer();
    let base = pointer.checked_sub(block::BEFORE)?;
    let (first, end) = (base + block::START, base + block::END);
    // The page that the thread pointer points to is there.
    let mut pages = (first & !(PAGE - 1)..end).step_by(PAGE);
    if !pages.all(|page| page == pointer & !(PAGE - 1) || is_readable(page)) {
        return None;
    }
    let word = |address: usize| {
        let word = core::ptr::with_exposed_provenance::<usize>(address);
        // SAFETY: a multiple of 8 in pages that were found to be readable; the block stays while the thread runs.
        // Volatile: it is the C library's.
        unsafe { word.read_volatile() }
    };
    (first..end - 2 * WORD).step_by(WORD).find_map(|at| {
        let (start, size, guard) = (word(at), word(at + WORD), word(at + 2 * WORD));
        let top = start.checked_add(size)?;
        let holds = start >= 16 * PAGE && start < pointer && guard < pointer - start;
        let ends = (at + 3 * WORD).max(pointer) <= top && top - pointer <= block::BEHIND;
        (holds && ends).then_some((start + guard, pointer))
    })
}
