//! Memory for allocations that the loader makes while this library looks up the real functions. Engine threads also
//! allocate here, since they must not call the real functions. They hardly ever call `malloc`.
//!
//! These blocks are never reused. `owns` recognizes them by their address.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 256 << 10;
/// The number of bytes before each block, which contain its size.
const HEADER: usize = 16;

#[repr(align(4096))]
struct BootstrapArea(core::cell::UnsafeCell<[u8; BYTES]>);

// SAFETY: only `alloc` writes. `USED` gives each call its own bytes, so threads never share a block here.
unsafe impl Sync for BootstrapArea {}

static PLACE: BootstrapArea = BootstrapArea(core::cell::UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Allocates zeroed bytes. Returns null if there is no room for them.
pub(crate) fn alloc(bytes: usize, align: usize) -> *mut c_void {
    let start = PLACE.0.get().cast::<u8>();
    let align = align.max(HEADER);
    // Reject sizes and alignments that no C function accepts, and blocks that do not fit.
    let room = align.checked_add(HEADER).and_then(|before| bytes.checked_add(before));
    let Some(room) = room.filter(|room| *room <= BYTES && align.is_power_of_two()) else { return null_mut() };
    let used = USED.fetch_add(room.next_multiple_of(HEADER), Ordering::Relaxed);
    if used + room > BYTES {
        return null_mut();
    }
    let address = (start.addr() + used + HEADER).next_multiple_of(align);
    let block = start.with_addr(address);
    // SAFETY: the header is in the bytes that `fetch_add` just gave to this call. It has the alignment of the block.
    unsafe { block.wrapping_sub(HEADER).cast::<usize>().write(bytes) };
    block.cast()
}

/// Whether `alloc` of this module made the block.
#[inline(always)]
pub(crate) fn owns(block: *const c_void) -> bool {
    block.addr().wrapping_sub(PLACE.0.get().addr()) < BYTES
}

/// The requested size of a block that [`owns`] recognizes.
pub(crate) fn size(block: *const c_void) -> usize {
    // SAFETY: the callers pass blocks that `owns` recognizes; `alloc` wrote the size before each of them.
    unsafe { block.cast::<u8>().wrapping_sub(HEADER).cast::<usize>().read() }
}
