//! Systems other than Linux: this module provides no figures. The module `sizes` provides the sizes of the process.

use core::alloc::{GlobalAlloc as _, Layout};
use core::ptr::NonNull;
use std::alloc::System;

use super::{CHeap, FoundSymbol, GroupAmounts, Mapping, MemoryStalls, MemoryUse, StackUsage};

pub(crate) fn c_heap() -> Option<CHeap> {
    None
}

pub(crate) fn trim_c_heap() {}

/// Zeroed pages from the system's allocator. `None` if it has no memory.
#[allow(unsafe_code, reason = "allocates memory")]
pub(crate) fn zeroed_pages(bytes: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(bytes, ALIGN).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    NonNull::new(unsafe { System.alloc_zeroed(layout) })
}

/// Returns pages of [`zeroed_pages`] to the system.
///
/// # Safety
///
/// `zeroed_pages` returned these pages for this size, and they are no longer used.
#[allow(unsafe_code, reason = "frees memory")]
pub(crate) unsafe fn return_pages(pages: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = Layout::from_size_align(bytes, ALIGN) {
        // SAFETY: the caller guarantees that `zeroed_pages` has allocated this block with this layout.
        unsafe { System.dealloc(pages.as_ptr(), layout) };
    }
}

/// With this alignment, the system allocates fresh pages without writing zeros to them.
const ALIGN: usize = 16;

pub(crate) fn resident_unique() -> Option<u64> {
    None
}

/// On this system, no code of this crate runs at a fork.
pub(crate) fn at_fork(_: extern "C" fn(), _: extern "C" fn(), _: extern "C" fn()) {}

pub(crate) fn thread_id() -> u32 {
    0
}

pub(crate) fn thread_stacks(_: &[(u32, usize)]) -> Vec<StackUsage> {
    Vec::new()
}

pub(crate) fn find_symbol(_: &core::ffi::CStr) -> FoundSymbol {
    FoundSymbol::Nowhere
}

pub(crate) fn mappings(_: &[(u32, usize)]) -> Option<Vec<Mapping>> {
    None
}

pub(crate) fn resident_in(_: std::ops::Range<usize>) -> Option<u64> {
    None
}

pub(crate) fn page_tables() -> Option<u64> {
    None
}

pub(crate) fn group_amounts() -> GroupAmounts {
    GroupAmounts::default()
}

pub(crate) fn memory_use() -> Option<MemoryUse> {
    None
}

pub(crate) fn memory_stalls() -> MemoryStalls {
    MemoryStalls::default()
}

pub(crate) fn process_start() -> Option<u64> {
    None
}

/// The time since the first call.
pub(crate) fn monotonic_nanoseconds() -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let since = FIRST.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Running code before `main` is not supported on this system.
macro_rules! call_before_main {
    ($function:path) => {
        const _: fn() = $function;
    };
}

pub(crate) use call_before_main;
