//! Memory for DMD's own data. It comes from the system, never from the measured heap.
//!
//! All functions here may run inside an allocation: they neither allocate nor panic, and they keep `errno`. They
//! return null if the system has no memory, or if DMD's own memory would exceed its limit. The limit is for tables
//! that grow with the program, so it does not count large mappings that are hardly touched.

use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use crate::system::lock::Lock;
#[cfg(target_os = "linux")]
pub(crate) use crate::system::mapping::page_size;
use crate::system::mapping::{map_pages, unmap_pages};
#[cfg(target_os = "linux")]
use crate::system::reserve;

/// The maximum number of bytes that all tables together may map. Above it, the engine drops new blocks and counts
/// them.
const BOUND: usize = 16 << 30;

/// The maximum number of bytes that all logs of allocations together may map. Logs have their own limit because
/// observers choose their lengths, and long logs must not take the memory of tables.
const LOG_BOUND: usize = 4 << 30;

static TABLES: AtomicUsize = AtomicUsize::new(0);
static LOGS: AtomicUsize = AtomicUsize::new(0);
static OTHERS: AtomicUsize = AtomicUsize::new(0);

/// The number of bytes mapped for tables, for logs and for dumps.
pub(crate) fn mapped() -> usize {
    TABLES.load(Ordering::Relaxed) + LOGS.load(Ordering::Relaxed) + OTHERS.load(Ordering::Relaxed)
}

/// Maps zeroed pages for a table, or returns null.
pub(crate) fn map(bytes: usize) -> *mut u8 {
    map_within(&TABLES, BOUND, bytes)
}

/// Maps zeroed pages for a log of allocations, or returns null.
pub(crate) fn map_for_log(bytes: usize) -> *mut u8 {
    map_within(&LOGS, LOG_BOUND, bytes)
}

/// The number of bytes mapped for logs.
pub(crate) fn mapped_for_logs() -> usize {
    LOGS.load(Ordering::Relaxed)
}

fn map_within(mapped: &AtomicUsize, bound: usize, bytes: usize) -> *mut u8 {
    if mapped.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > bound {
        mapped.fetch_sub(bytes, Ordering::Relaxed);
        return null_mut();
    }
    let pages = map_pages(bytes);
    if pages.is_null() {
        mapped.fetch_sub(bytes, Ordering::Relaxed);
    }
    pages
}

/// Maps zeroed pages for the value that `place` points to, unless another thread has mapped them. Adds their size in
/// bytes to `mapped`. Returns whether the pages are mapped.
pub(crate) fn map_once<T>(place: &AtomicPtr<T>, mapped: &AtomicUsize) -> bool {
    if !place.load(Ordering::Acquire).is_null() {
        return true;
    }
    let bytes = size_of::<T>();
    let fresh = map(bytes);
    if fresh.is_null() {
        return false;
    }
    if place.compare_exchange(null_mut(), fresh.cast(), Ordering::AcqRel, Ordering::Acquire).is_ok() {
        mapped.fetch_add(bytes, Ordering::Relaxed);
    } else {
        // SAFETY: this function mapped the bytes with this size, and no other thread has seen them.
        unsafe { unmap(fresh, bytes) };
    }
    true
}

/// Maps zeroed pages for a dump, or for another use without a limit, or returns null.
pub(crate) fn map_for_dump(bytes: usize) -> *mut u8 {
    #[cfg(target_os = "linux")]
    {
        let reserved = reserve::take(bytes);
        if !reserved.is_null() {
            return reserved;
        }
    }
    let pages = map_pages(bytes);
    if !pages.is_null() {
        OTHERS.fetch_add(bytes, Ordering::Relaxed);
    }
    pages
}

/// A value in its own lines of the processor's cache. Several threads write the value, and other data in the same lines
/// would slow these threads down.
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

/// Prefetches memory that this thread is about to write.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, which cannot fault.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches memory that this thread is about to read.
#[inline(always)]
pub(crate) fn prefetch_to_read<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, which cannot fault.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Unmaps pages.
///
/// # Safety
///
/// `pages` came from [`map`] with the same size, and they are not used any more.
pub(crate) unsafe fn unmap(pages: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees that the pages came from `map_pages` with this size and are no longer in use.
    unsafe { unmap_pages(pages, bytes) };
    TABLES.fetch_sub(bytes, Ordering::Relaxed);
}

/// Unmaps pages.
///
/// # Safety
///
/// `pages` came from [`map_for_log`] with the same size, and they are not used any more.
pub(crate) unsafe fn unmap_for_log(pages: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees that the pages came from `map_pages` with this size and are no longer in use.
    unsafe { unmap_pages(pages, bytes) };
    LOGS.fetch_sub(bytes, Ordering::Relaxed);
}

/// Unmaps pages.
///
/// # Safety
///
/// `pages` came from [`map_for_dump`] with the same size, and they are not used any more.
pub(crate) unsafe fn unmap_for_dump(pages: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if reserve::give_back(pages, bytes) {
        return;
    }
    // SAFETY: the caller guarantees that the pages came from `map_pages` with this size and are no longer in use.
    unsafe { unmap_pages(pages, bytes) };
    OTHERS.fetch_sub(bytes, Ordering::Relaxed);
}

/// A pool of parts of one size. The parts are zeroed and never freed. A pool takes no lock, so that a signal handler
/// may interrupt it.
pub(crate) struct ZeroedPool<T> {
    /// The first page of the mapping from which parts are taken, and the number of parts taken.
    current: AtomicU64,
    mapped: AtomicUsize,
    parts: PhantomData<fn() -> T>,
}

impl<T> ZeroedPool<T> {
    const MAPPING: usize = 1 << 20;
    const IN_MAPPING: u64 = (Self::MAPPING / size_of::<T>()) as u64;
    const COUNT_BITS: u32 = 21;
    const PAGE_BITS: u32 = 12;

    pub(crate) const fn new() -> Self {
        Self { current: AtomicU64::new(0), mapped: AtomicUsize::new(0), parts: PhantomData }
    }

    /// The number of bytes mapped for the pool.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// The number of bytes in the parts that were taken.
    pub(crate) fn used(&self) -> usize {
        let (_, taken) = Self::split(self.current.load(Ordering::Relaxed));
        let left = Self::IN_MAPPING.saturating_sub(taken) as usize * size_of::<T>();
        self.mapped().saturating_sub(if taken == 0 { 0 } else { left })
    }

    fn split(current: u64) -> (usize, u64) {
        let page = (current >> Self::COUNT_BITS) as usize;
        (page << Self::PAGE_BITS, current & ((1 << Self::COUNT_BITS) - 1))
    }

    /// Returns a zeroed part, or null.
    pub(crate) fn take(&self) -> *mut T {
        loop {
            let current = self.current.load(Ordering::Acquire);
            let (start, taken) = Self::split(current);
            if start != 0 && taken < Self::IN_MAPPING {
                let next =
                    self.current.compare_exchange(current, current + 1, Ordering::AcqRel, Ordering::Acquire);
                if next.is_ok() {
                    return core::ptr::with_exposed_provenance_mut(start + taken as usize * size_of::<T>());
                }
                continue;
            }
            let fresh = map(Self::MAPPING);
            if fresh.is_null() {
                return null_mut();
            }
            let page = (fresh.expose_provenance() >> Self::PAGE_BITS) as u64;
            let next = page << Self::COUNT_BITS | 1;
            if self.current.compare_exchange(current, next, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.mapped.fetch_add(Self::MAPPING, Ordering::Relaxed);
                return fresh.cast();
            }
            // SAFETY: this function mapped the bytes, and no other thread has seen them.
            unsafe { unmap(fresh, Self::MAPPING) };
        }
    }
}

const CHUNK: usize = 256 << 10;

/// A bump allocator for small data that lives as long as the process.
pub(crate) struct Arena {
    lock: Lock,
    next: AtomicPtr<u8>,
    left: AtomicUsize,
}

impl Arena {
    pub(crate) const fn new() -> Self {
        Self { lock: Lock::new(), next: AtomicPtr::new(null_mut()), left: AtomicUsize::new(0) }
    }

    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Returns zeroed bytes, aligned to 16, or null.
    pub(crate) fn take(&self, bytes: usize) -> *mut u8 {
        let bytes = bytes.next_multiple_of(16);
        if bytes > CHUNK / 4 {
            return map(bytes.next_multiple_of(4096));
        }
        let _held = self.lock.hold();
        let left = self.left.load(Ordering::Relaxed);
        let start = if left < bytes { map(CHUNK) } else { self.next.load(Ordering::Relaxed) };
        if start.is_null() {
            return null_mut();
        }
        let left = if left < bytes { CHUNK } else { left };
        // The jump of a signal handler may leave this code in the middle: then the remaining bytes are lost.
        self.left.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.next.store(start.wrapping_add(bytes), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.left.store(left - bytes, Ordering::Relaxed);
        start
    }
}
