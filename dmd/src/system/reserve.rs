//! Memory that is set aside at the start for the dumps of the black box: pages for the dump's tables, and a stack.
//!
//! Near the limit of its memory, a process gets no new page. So the pages here are written once in advance. While a
//! thread uses the reserve, [`memory::map_for_dump`](super::memory::map_for_dump) takes pages from here, and maps new
//! ones only when the reserve is used up.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::system::errno::keeping_errno;
use crate::system::mapping;
use crate::system::slot::slot;

/// The size of the stack. See [`own_stack`](super::own_stack) for what a dump needs.
pub(crate) const STACK: usize = 2 << 20;
/// The part of the stack that is written in advance: the part that a dump of an optimized build uses.
const WRITTEN_STACK: usize = 128 << 10;
/// The pages for tables.
const PAGES: usize = 1536 << 10;
const PAGE: usize = 4096;

/// The start of the reserve: the stack, then the pages. 0 before it is mapped.
static START: AtomicUsize = AtomicUsize::new(0);
/// The address of the slot of the thread that uses the reserve; 0 if no thread uses it.
static USER: AtomicUsize = AtomicUsize::new(0);
/// The number of bytes of the pages that are taken. Only the user changes it.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The number of bytes of the pages that may contain data of an earlier use.
static STALE: AtomicUsize = AtomicUsize::new(0);

fn this_thread() -> usize {
    core::ptr::from_ref(slot()).addr()
}

/// Maps the reserve and writes its pages, unless that was done before. Returns false if there is no memory. Only one
/// thread calls this.
pub(crate) fn prepare() -> bool {
    if START.load(Ordering::Acquire) != 0 {
        return true;
    }
    let start = mapping::map_pages(STACK + PAGES);
    if start.is_null() {
        return false;
    }
    // SAFETY: this is the lowest page of the mapping, and no code uses it yet.
    unsafe { libc::mprotect(start.cast(), PAGE, libc::PROT_NONE) };
    write_pages(start.wrapping_add(STACK - WRITTEN_STACK), WRITTEN_STACK + PAGES);
    START.store(start.expose_provenance(), Ordering::Release);
    true
}

/// Gives pages memory before they are needed, and keeps them from being swapped out if the system allows that. The
/// pages keep their contents.
pub(crate) fn write_pages(start: *mut u8, bytes: usize) {
    keeping_errno(|| {
        // SAFETY: the caller passes pages of the engine, and the call does not change their contents.
        let failed = unsafe { libc::madvise(start.cast(), bytes, libc::MADV_POPULATE_WRITE) } != 0;
        for page in (0..bytes).step_by(PAGE).filter(|_| failed) {
            let place = start.wrapping_add(page);
            // SAFETY: the byte is in the pages, and an older kernel needs a write. No other code writes it meanwhile.
            let byte = unsafe { place.read_volatile() };
            // SAFETY: as above.
            unsafe { place.write_volatile(byte) };
        }
        // The call fails in most containers. Then the pages may be swapped out, and are read again when they are used.
        // SAFETY: the pages are mapped.
        unsafe { libc::mlock(start.cast(), bytes) };
    });
}

/// Runs `body` with the reserve for this thread. The caller holds the lock of dumps, so no other thread uses it.
pub(crate) fn used_here<T>(body: impl FnOnce() -> T) -> T {
    USER.store(this_thread(), Ordering::Release);
    let result = body();
    USER.store(0, Ordering::Release);
    STALE.fetch_max(TAKEN.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    result
}

fn is_ours() -> bool {
    let user = USER.load(Ordering::Relaxed);
    user != 0 && user == this_thread()
}

/// The reserved stack, if this thread uses the reserve.
pub(crate) fn stack() -> Option<usize> {
    let start = START.load(Ordering::Acquire);
    (is_ours() && start != 0).then_some(start)
}

/// Takes zeroed pages. Returns null if this thread does not use the reserve, or if the pages do not fit.
pub(super) fn take(bytes: usize) -> *mut u8 {
    let start = START.load(Ordering::Acquire);
    let taken = TAKEN.load(Ordering::Relaxed);
    let bytes = bytes.next_multiple_of(PAGE);
    if start == 0 || !is_ours() || bytes > PAGES - taken {
        return core::ptr::null_mut();
    }
    TAKEN.store(taken + bytes, Ordering::Relaxed);
    let pages = core::ptr::with_exposed_provenance_mut::<u8>(start + STACK + taken);
    let stale = STALE.load(Ordering::Relaxed).saturating_sub(taken).min(bytes);
    // SAFETY: the bytes are a part of the reserve that only this thread uses, and that is not taken.
    unsafe { pages.write_bytes(0, stale) };
    pages
}

/// Gives pages of [`take`] back. Returns false if they are not from the reserve.
pub(super) fn give_back(pages: *mut u8, bytes: usize) -> bool {
    let start = START.load(Ordering::Acquire) + STACK;
    let at = pages.addr().wrapping_sub(start);
    if start == STACK || at >= PAGES {
        return false;
    }
    let taken = TAKEN.load(Ordering::Relaxed);
    if at + bytes.next_multiple_of(PAGE) == taken {
        // The last pages are free again. Other pages become free at the end of the use.
        STALE.fetch_max(taken, Ordering::Relaxed);
        TAKEN.store(at, Ordering::Relaxed);
    }
    true
}
