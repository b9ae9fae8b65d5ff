//! The heap of the engine's own Rust code, for example of the code that writes a dump. The heap uses its own pages, so
//! that a dump does not change the program's heap, which the dump describes.

use core::alloc::Layout;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::system::lock::{Lock, LockedValue};
use crate::system::memory;
#[cfg(target_os = "linux")]
use crate::system::reserve;

/// The heap maps one region of this size and no further region. Blocks that do not fit are allocated elsewhere.
const REGION: usize = 32 << 20;
/// The size of the reserve, enough for a dump if address space is short. The engine maps it at the start.
const RESERVE: usize = 2 << 20;
/// The size of the smallest block, as a power of two.
const LEAST: u32 = 4;
const CLASSES: usize = 22;

struct InternalHeap {
    used: usize,
    live: usize,
    /// The first free block of each size. The first word of a free block is the address of the next free block.
    free: [usize; CLASSES],
}

static HEAP: LockedValue<InternalHeap> =
    LockedValue::new(InternalHeap { used: 0, live: 0, free: [0; CLASSES] });
/// Start of the region; 0 before it is mapped.
static START: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Start of the reserve; 0 before `reserve` maps it, or if it could not be mapped.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(HEAP.lock());
}

fn class(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(1 << LEAST).checked_next_power_of_two()?;
    let class = (bytes.trailing_zeros() - LEAST) as usize;
    (class < CLASSES && layout.align() <= 4096).then_some(class)
}

fn bytes_of(class: usize) -> usize {
    1 << (class as u32 + LEAST)
}

/// Returns a block, or null if there is no room.
pub(crate) fn alloc(layout: Layout) -> *mut u8 {
    let Some(class) = class(layout) else { return null_mut() };
    let mut heap = HEAP.hold();
    let free = heap.free[class];
    if free != 0 {
        let block = core::ptr::with_exposed_provenance_mut::<usize>(free);
        // SAFETY: the block is a free block of this heap, so its first word is the address of the next free block.
        heap.free[class] = unsafe { block.read() };
        heap.live += bytes_of(class);
        return block.cast();
    }
    let Some((region, length)) = region() else { return null_mut() };
    let bytes = bytes_of(class);
    // Every size is a power of two, so it is a valid alignment.
    let start = (region + heap.used).next_multiple_of(bytes.min(4096));
    if start + bytes > region + length {
        return null_mut();
    }
    heap.used = start + bytes - region;
    heap.live += bytes;
    core::ptr::with_exposed_provenance_mut(start)
}

/// Start and length of the region. The caller holds the lock.
fn region() -> Option<(usize, usize)> {
    let known = START.load(Ordering::Relaxed);
    if known != 0 {
        return Some((known, LENGTH.load(Ordering::Relaxed)));
    }
    let mapped = memory::map_for_dump(REGION).expose_provenance();
    let (start, length) =
        if mapped != 0 { (mapped, REGION) } else { (RESERVED.load(Ordering::Relaxed), RESERVE) };
    LENGTH.store(length, Ordering::Relaxed);
    START.store(start, Ordering::Relaxed);
    (start != 0).then_some((start, length))
}

/// Maps the reserve. Called once.
pub(crate) fn reserve() {
    RESERVED.store(memory::map_for_dump(RESERVE).expose_provenance(), Ordering::Relaxed);
}

/// Maps the region if it is not mapped yet. Returns false if there is not enough memory to write a dump: Rust would
/// end the process in that case.
pub(crate) fn is_ready() -> bool {
    let _heap = HEAP.hold();
    region().is_some()
}

/// Gives the next bytes of the region memory before they are needed: a dump near the limit of the memory gets no new
/// page. Returns false if there is no region.
#[cfg(target_os = "linux")]
pub(crate) fn write_ahead(bytes: usize) -> bool {
    let heap = HEAP.hold();
    let Some((start, length)) = region() else { return false };
    let used = heap.used.next_multiple_of(4096);
    let bytes = bytes.min(length.saturating_sub(used));
    // The lock is held, since no block may be made in these pages meanwhile.
    reserve::write_pages(core::ptr::with_exposed_provenance_mut(start + used), bytes);
    true
}

/// Bytes of all live blocks.
pub(crate) fn live() -> usize {
    HEAP.hold().live
}

/// Whether the block was made by [`alloc`].
#[inline]
pub(crate) fn owns(block: *const u8) -> bool {
    let start = START.load(Ordering::Relaxed);
    start != 0 && block.addr().wrapping_sub(start) < LENGTH.load(Ordering::Relaxed)
}

/// Frees a block.
///
/// # Safety
///
/// The block was made by [`alloc`] for the same layout, and it is not used any more.
pub(crate) unsafe fn dealloc(block: *mut u8, layout: Layout) {
    let Some(class) = class(layout) else { return };
    let mut heap = HEAP.hold();
    let next = heap.free[class];
    // SAFETY: the caller of `dealloc` passes a block of `alloc`. It has at least 16 bytes and is free now.
    unsafe { block.cast::<usize>().write(next) };
    heap.free[class] = block.expose_provenance();
    heap.live -= bytes_of(class);
}

/// The allocator of a library in which all Rust code is the engine's, such as `libdmd.so`.
#[derive(Clone, Copy, Debug)]
pub struct InternalAllocator;

// SAFETY: blocks are disjoint parts of one region, or separate mappings. They have the requested size and alignment.
unsafe impl core::alloc::GlobalAlloc for InternalAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = alloc(layout);
        if block.is_null() && layout.align() <= 4096 && layout.size() < isize::MAX as usize - 4096 {
            return memory::map_for_dump(layout.size().next_multiple_of(4096));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if owns(block) {
            // SAFETY: the block is in the region, so `alloc` made it. The caller passes its layout and does not use it
            // any more.
            unsafe { dealloc(block, layout) }
        } else {
            // SAFETY: outside of the region, each block is a mapping of its size, rounded up in the same way.
            unsafe { memory::unmap_for_dump(block, layout.size().next_multiple_of(4096)) }
        }
    }
}
