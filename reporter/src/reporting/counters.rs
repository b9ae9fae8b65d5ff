//! Counters, for foreign code whose memory this crate cannot walk.
//!
//! They correspond to Firefox's `CountingAllocatorBase`: give the foreign library the functions of [`CountingMalloc`]
//! as its allocator, and report the counter.

use core::alloc::Layout;
use core::cell::Cell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::alloc;

use crate::allocator::declared;
use crate::engine_abi::{is_known, mark_on_alloc};

use super::isolation;
use super::tag_pause::TagPause;

/// A count of allocated bytes. The code that allocates and frees must update it.
///
/// While DMD records, [`allocated`](Self::allocated) marks the block that starts at the pointer as reported, until
/// the program frees the block. So a reporter must report the counter. Bytes without such a block (a mapping, a part
/// of an arena, a null pointer) are reported by amount. If they are heap memory, the row
/// `heap-unclassified/(reported by amount, blocks unknown)` includes them.
///
/// ```
/// use memory_reporter::counters::MemoryCounter;
///
/// static TEXTURES: MemoryCounter = MemoryCounter::new();
///
/// memory_reporter::define_reporter!(
///     "explicit/textures", NonHeap, Bytes, TEXTURES.bytes(), "Memory mapped for textures."
/// );
///
/// TEXTURES.allocated(core::ptr::null::<u8>(), 4096);
/// assert_eq!(TEXTURES.bytes(), 4096);
/// ```
#[derive(Debug, Default)]
pub struct MemoryCounter {
    bytes: AtomicUsize,
    /// With DMD: the bytes of the blocks that `allocated` has marked.
    marked: AtomicUsize,
    /// With DMD: whether [`CountingMalloc`] uses this counter and has marked a block. All bytes of the counter then
    /// count as marked, although DMD with sampling records only some of the blocks.
    is_marked: AtomicBool,
}

std::thread_local! {
    /// The counters with marked blocks that the reporter of this thread has read: their addresses, and the bytes of
    /// the blocks.
    static READ: Cell<Vec<(usize, usize)>> = const { Cell::new(Vec::new()) };
}

/// Returns and clears the counters with marked blocks that the reporter of this thread has read: their addresses, and
/// the bytes of the blocks.
pub(crate) fn take_read() -> Vec<(usize, usize)> {
    // The list no longer exists at the end of the thread.
    READ.try_with(Cell::take).unwrap_or_default()
}

impl MemoryCounter {
    /// A counter at 0.
    pub const fn new() -> Self {
        Self { bytes: AtomicUsize::new(0), marked: AtomicUsize::new(0), is_marked: AtomicBool::new(false) }
    }

    /// Counts a new block. With DMD, marks the block that starts at the pointer as reported, for as long as the block
    /// lives. Any pointer is allowed; it is not read.
    pub fn allocated<T: ?Sized>(&self, pointer: *const T, bytes: usize) {
        self.count(bytes);
        if is_known(pointer.cast()) && mark_on_alloc(pointer.cast()) {
            self.marked.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Subtracts a block that [`allocated`](Self::allocated) counted with this many bytes. Call it before the program
    /// frees the block, while DMD still has the block.
    pub fn freed<T: ?Sized>(&self, pointer: *const T, bytes: usize) {
        if self.marked.load(Ordering::Relaxed) > 0 && is_known(pointer.cast()) {
            let less = |marked: usize| Some(marked.saturating_sub(bytes));
            // The closure always returns a number, so the update succeeds.
            let _ = self.marked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        self.uncount(bytes);
    }

    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn uncount(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes that are allocated now.
    pub fn bytes(&self) -> usize {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let all_marked = self.is_marked.load(Ordering::Relaxed);
        let marked = if all_marked { bytes } else { self.marked.load(Ordering::Relaxed).min(bytes) };
        if marked > 0 && isolation::is_reporting() {
            let (address, mut read) = (core::ptr::from_ref(self).addr(), take_read());
            if read.iter().all(|(other, _)| *other != address) {
                read.push((address, marked));
            }
            let _ = READ.try_with(|list| list.set(read));
        }
        bytes
    }
}

/// A site: a marker type for one user of [`CountingMalloc`], such as a foreign library, with its own counter.
pub trait CounterSite {
    /// The counter of this site.
    const COUNTER: &'static MemoryCounter;
}

/// C allocation functions that use Rust's global allocator and count at the site `S`. The memory is part of
/// `heap-allocated`, so report the counter as [`Kind::Heap`](crate::Kind::Heap).
///
/// ```
/// use memory_reporter::counters::{CounterSite, CountingMalloc, MemoryCounter};
///
/// static COUNTER: MemoryCounter = MemoryCounter::new();
///
/// struct Zlib;
/// impl CounterSite for Zlib {
///     const COUNTER: &'static MemoryCounter = &COUNTER;
/// }
///
/// memory_reporter::define_reporter!(
///     "explicit/zlib", Heap, Bytes, COUNTER.bytes(), "Memory used by zlib."
/// );
///
/// let block = CountingMalloc::<Zlib>::malloc(100);
/// assert!(COUNTER.bytes() >= 100);
/// // SAFETY: `malloc` returned this block.
/// assert_eq!(unsafe { CountingMalloc::<Zlib>::size(block) }, 100);
/// // SAFETY: `malloc` returned this block.
/// unsafe { CountingMalloc::<Zlib>::free(block) };
/// assert_eq!(COUNTER.bytes(), 0);
/// ```
#[derive(Debug)]
pub struct CountingMalloc<S>(PhantomData<S>);

/// The size of the header. Each block starts with its size, which `free` needs; 16 bytes keep C's alignment.
const HEADER: usize = 16;

#[allow(unsafe_code, reason = "allocation functions for C")]
impl<S: CounterSite> CountingMalloc<S> {
    /// The function `malloc`: returns a block aligned to 16 bytes, or null.
    pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
        Self::allocate(bytes, |layout| {
            // SAFETY: the size is not 0, since it includes the header.
            unsafe { alloc::alloc(layout) }
        })
    }

    /// The function `calloc`: returns a zeroed block, or null.
    pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
        let Some(bytes) = count.checked_mul(bytes) else { return null_mut() };
        Self::allocate(bytes, |layout| {
            // SAFETY: the size is not 0, since it includes the header.
            unsafe { alloc::alloc_zeroed(layout) }
        })
    }

    /// The function `realloc`: returns the block with another size. If it returns null, the old block is unchanged.
    ///
    /// # Safety
    ///
    /// `pointer` is null or a live block of these functions, at this site.
    pub unsafe extern "C" fn realloc(pointer: *mut c_void, bytes: usize) -> *mut c_void {
        if pointer.is_null() {
            return Self::malloc(bytes);
        }
        let Some(new) = layout(bytes) else { return null_mut() };
        // SAFETY: the caller guarantees a live block that `started` returned.
        let (start, old) = unsafe { start_and_layout(pointer) };
        // SAFETY: `start_and_layout` returned the start and layout of a live block of the global allocator.
        let before = unsafe { counted_bytes(start, old) };
        let suspended = TagPause::new();
        // SAFETY: `start` has layout `old`, and `new` is a valid layout of the same alignment.
        let moved = unsafe { alloc::realloc(start, old, new.size()) };
        drop(suspended);
        if moved.is_null() {
            return null_mut();
        }
        S::COUNTER.uncount(before);
        Self::started(moved, new, bytes)
    }

    /// The function `free`.
    ///
    /// # Safety
    ///
    /// `pointer` is null or a live block of these functions, at this site.
    pub unsafe extern "C" fn free(pointer: *mut c_void) {
        if pointer.is_null() {
            return;
        }
        // SAFETY: the caller guarantees a live block that `started` returned.
        let (start, layout) = unsafe { start_and_layout(pointer) };
        // SAFETY: `start_and_layout` returned the start and layout of a live block of the global allocator.
        S::COUNTER.uncount(unsafe { counted_bytes(start, layout) });
        // SAFETY: `start_and_layout` returned the start and layout of a live block of the global allocator. The
        // caller does not use the block afterwards.
        unsafe { alloc::dealloc(start, layout) };
    }

    /// The bytes that the caller of `malloc` requested; 0 for null. Some libraries need such a function: `xSize` of
    /// `SQLite`.
    ///
    /// # Safety
    ///
    /// `pointer` is null or a live block of these functions.
    pub unsafe extern "C" fn size(pointer: *mut c_void) -> usize {
        if pointer.is_null() {
            return 0;
        }
        // SAFETY: the caller guarantees a live block that `started` returned.
        let (_, layout) = unsafe { start_and_layout(pointer) };
        layout.size() - HEADER
    }

    fn allocate(bytes: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> *mut c_void {
        let Some(layout) = layout(bytes) else { return null_mut() };
        // The counter's report already contains the block, so no tag may count it.
        let suspended = TagPause::new();
        let start = allocate(layout);
        drop(suspended);
        if start.is_null() { null_mut() } else { Self::started(start, layout, bytes) }
    }

    /// Writes the header of a new block with this layout, and counts the block. Returns the address after the header.
    fn started(start: *mut u8, layout: Layout, bytes: usize) -> *mut c_void {
        // SAFETY: `start` is not null. The block was allocated for `layout`, so it is aligned to 16 bytes and has
        // room for the header.
        unsafe { start.cast::<usize>().write(bytes) };
        // SAFETY: the block was allocated with room for the header.
        let pointer = unsafe { start.add(HEADER) };
        // SAFETY: the caller has just allocated `start` from the global allocator with this layout.
        S::COUNTER.count(unsafe { counted_bytes(start, layout) });
        if mark_on_alloc(start) && !S::COUNTER.is_marked.load(Ordering::Relaxed) {
            S::COUNTER.is_marked.store(true, Ordering::Relaxed);
        }
        pointer.cast()
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEADER)?, HEADER).ok()
}

/// # Safety
///
/// `pointer` is a live block of [`CountingMalloc`].
#[allow(unsafe_code, reason = "reads the header")]
unsafe fn start_and_layout(pointer: *mut c_void) -> (*mut u8, Layout) {
    // SAFETY: the caller guarantees a pointer that `started` returned. It is directly after the header.
    let start = unsafe { pointer.cast::<u8>().sub(HEADER) };
    // SAFETY: `started` wrote the size to the start of this live block, which is aligned to 16 bytes.
    let bytes = unsafe { start.cast::<usize>().read() };
    // SAFETY: the block was allocated with exactly this layout, so the layout is valid.
    (start, unsafe { Layout::from_size_align_unchecked(bytes + HEADER, HEADER) })
}

/// # Safety
///
/// `start` is a live block of the global allocator, allocated with `layout`.
#[allow(unsafe_code, reason = "calls the declared allocator")]
unsafe fn counted_bytes(start: *const u8, layout: Layout) -> usize {
    match declared() {
        // SAFETY: the caller guarantees a live block of the global allocator with this layout, and the declared
        // allocator is the global allocator.
        Some(allocator) => unsafe { allocator.usable_size().ask(start, layout) },
        None => layout.size(),
    }
}
