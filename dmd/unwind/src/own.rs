//! Finds a thread's own stack in the data that the C library wrote when it made the thread.
//!
//! glibc keeps the start of the stack's memory, its size and the size of its guard in three words of the thread's
//! control block. The control block is at the upper end of that memory. The position of these words is not part of
//! glibc's interface, so this code recognizes them by their values: they describe memory that contains the words
//! themselves and ends shortly after them. `pthread_getattr_np` is not an alternative: it waits for a lock that this
//! thread may hold, allocates, and reads a file on the main thread. The main thread has no such words, and threads of
//! other C libraries do not have them either.

use crate::sys::{is_readable, thread_pointer};

const PAGE: usize = 4096;
const WORD: usize = size_of::<usize>();

/// The range of the words, relative to the thread pointer.
#[cfg(target_arch = "x86_64")]
mod block {
    pub(crate) const BEFORE: usize = 0;
    pub(crate) const START: usize = 0x300;
    pub(crate) const END: usize = 0x800;
    /// The maximum distance from the thread pointer to the end of the stack's memory, in bytes. Only the control block
    /// is between the two.
    pub(crate) const BEHIND: usize = 64 << 10;
}
#[cfg(target_arch = "aarch64")]
mod block {
    pub(crate) const BEFORE: usize = 0x700;
    pub(crate) const START: usize = 0;
    pub(crate) const END: usize = 0x700;
    /// The maximum distance from the thread pointer to the end of the stack's memory, in bytes. The thread's static
    /// variables follow the control block, so the distance is larger than on x86-64.
    pub(crate) const BEHIND: usize = 64 << 20;
}

/// The limits of this thread's stack, without the guard below it and the control block above it.
#[cold]
pub(crate) fn stack_of_this_thread() -> Option<(usize, usize)> {
    let pointer = thread_pointer();
    let base = pointer.checked_sub(block::BEFORE)?;
    let (first, end) = (base + block::START, base + block::END);
    // The page that the thread pointer points to is mapped.
    let mut pages = (first & !(PAGE - 1)..end).step_by(PAGE);
    if !pages.all(|page| page == pointer & !(PAGE - 1) || is_readable(page)) {
        return None;
    }
    let word = |address: usize| {
        let word = core::ptr::with_exposed_provenance::<usize>(address);
        // SAFETY: the address is a multiple of 8. It is in pages that `is_readable` checked, or in the control block
        // itself, which stays mapped while this thread runs. The read is volatile, since the C library owns the block.
        unsafe { word.read_volatile() }
    };
    (first..end - 2 * WORD).step_by(WORD).find_map(|at| {
        let (start, size, guard) = (word(at), word(at + WORD), word(at + 2 * WORD));
        let top = start.checked_add(size)?;
        let holds = start >= 16 * PAGE && start < pointer && guard < pointer - start;
        let ends = (at + 3 * WORD).max(pointer) <= top && top - pointer <= block::BEHIND;
        // For words that fail a check the sum may overflow, so it is computed only after both checks.
        (holds && ends).then(|| (start + guard, pointer))
    })
}
