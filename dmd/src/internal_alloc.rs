//! Where Rust code of the engine allocates, when it writes a dump: pages of our own, so that a dump changes
//! nothing in the heap that it tells of.

use core::alloc::Layout;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::{Guarded, Lock};
use crate::memory;

/// Taken once, and never more: what does not fit goes elsewhere.
const REGION: usize = 32 << 20;
/// The smallest block, as a power of two.
const LEAST: u32 = 4;
const CLASSES: usize = 22;

struct Heap {
    used: usize,
    /// Free blocks by size, each with the address of the next in its first word.
    free: [usize; CLASSES],
}

static HEAP: Guarded<Heap> = Guarded::new(Heap { used: 0, free: [0; CLASSES] });
/// Of the region; 0 before it is taken.
static START: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(HEAP.lock());
}

fn class(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(1 << LEAST).checked_next_power_of_two()?;
    let class = (bytes.trailing_zeros() - LEAST) as usize;
    (class < CLASSES && layout.align() <= 4096).then_some(class)
}

/// A block, or null: there is no room.
pub(crate) fn alloc(layout: Layout) -> *mut u8 {
    let Some(class) = class(layout) else { return null_mut() };
    let mut heap = HEAP.hold();
    let free = heap.free[class];
    if free != 0 {
        let block = core::ptr::with_exposed_provenance_mut::<usize>(free);
        // SAFETY: a free block of this heap, whose first word is ours.
        heap.free[class] = unsafe { block.read() };
        return block.cast();
    }
    let mut region = START.load(Ordering::Relaxed);
    if region == 0 {
        region = memory::map(REGION).expose_provenance();
        if region == 0 {
            return null_mut();
        }
        START.store(region, Ordering::Relaxed);
    }
    let bytes = 1 << (class as u32 + LEAST);
    // A size is a power of two, and so an alignment.
    let start = (region + heap.used).next_multiple_of(bytes.min(4096));
    if start + bytes > region + REGION {
        return null_mut();
    }
    heap.used = start + bytes - region;
    core::ptr::with_exposed_provenance_mut(start)
}

/// Whether the block is one of [`alloc`].
#[inline]
pub(crate) fn owns(block: *const u8) -> bool {
    let start = START.load(Ordering::Relaxed);
    start != 0 && block.addr().wrapping_sub(start) < REGION
}

/// Takes a block back.
///
/// # Safety
///
/// The block came from [`alloc`] for the same layout, and nobody uses it any more.
pub(crate) unsafe fn dealloc(block: *mut u8, layout: Layout) {
    let Some(class) = class(layout) else { return };
    let mut heap = HEAP.hold();
    let next = heap.free[class];
    // SAFETY: at least 16 bytes that are free now.
    unsafe { block.cast::<usize>().write(next) };
    heap.free[class] = block.expose_provenance();
}

/// The allocator of a library in which all Rust code is the engine's, such as `libdmd.so`.
#[derive(Clone, Copy, Debug)]
pub struct Internal;

// SAFETY: blocks are disjoint parts of one region or of their own mapping, aligned and sized as asked.
unsafe impl core::alloc::GlobalAlloc for Internal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = alloc(layout);
        if block.is_null() && layout.align() <= 4096 && layout.size() < isize::MAX as usize - 4096 {
            return memory::map(layout.size().next_multiple_of(4096));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if owns(block) {
            // SAFETY: the caller's promise.
            unsafe { dealloc(block, layout) }
        } else {
            // SAFETY: what is not of the region was mapped, with the same size rounded up.
            unsafe { memory::unmap(block, layout.size().next_multiple_of(4096)) }
        }
    }
}
