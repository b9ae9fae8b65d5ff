//! Memory for those who allocate while the real functions are looked up: the loader does.
//!
//! Never given back; recognised by its address.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 256 << 10;
/// Before each block lies its size.
const HEADER: usize = 16;

#[repr(align(4096))]
struct Place(core::cell::UnsafeCell<[u8; BYTES]>);

// SAFETY: blocks are handed out once, and are disjoint.
unsafe impl Sync for Place {}

static PLACE: Place = Place(core::cell::UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed bytes, or null.
pub(crate) fn alloc(bytes: usize, align: usize) -> *mut c_void {
    let start = PLACE.0.get().cast::<u8>();
    let align = align.max(HEADER);
    // What no function would give, nor what does not fit.
    let room = align.checked_add(HEADER).and_then(|before| bytes.checked_add(before));
    let Some(room) = room.filter(|room| *room <= BYTES && align.is_power_of_two()) else { return null_mut() };
    let used = USED.fetch_add(room.next_multiple_of(HEADER), Ordering::Relaxed);
    if used + room > BYTES {
        return null_mut();
    }
    let address = (start.addr() + used + HEADER).next_multiple_of(align);
    let block = start.with_addr(address);
    // SAFETY: the header is inside what was just taken, and aligned as the block is.
    unsafe { block.wrapping_sub(HEADER).cast::<usize>().write(bytes) };
    block.cast()
}

/// Whether a block is one of these.
#[inline(always)]
pub(crate) fn owns(block: *const c_void) -> bool {
    block.addr().wrapping_sub(PLACE.0.get().addr()) < BYTES
}

/// The size that was asked for.
pub(crate) fn size(block: *const c_void) -> usize {
    // SAFETY: a block of ours has its size before it.
    unsafe { block.cast::<u8>().wrapping_sub(HEADER).cast::<usize>().read() }
}
