//! A system that this crate does not know: it answers nothing.

use core::alloc::{GlobalAlloc as _, Layout};
use core::ptr::NonNull;
use std::alloc::System;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{CHeap, FoundSymbol, ListenError, Mapping, PageFaults, Statm, ThreadStack, Trigger};

pub(crate) fn c_heap() -> Option<CHeap> {
    None
}

pub(crate) fn trim_c_heap() {}

/// Pages of zeros, from the system's allocator. `None` if it has no memory.
#[allow(unsafe_code, reason = "asks an allocator for memory")]
pub(crate) fn zeroed_pages(bytes: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(bytes, ALIGN).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    NonNull::new(unsafe { System.alloc_zeroed(layout) })
}

/// Returns pages of [`zeroed_pages`] to the system.
///
/// # Safety
///
/// `zeroed_pages` has returned them for this size, and nobody uses them.
#[allow(unsafe_code, reason = "gives an allocator memory back")]
pub(crate) unsafe fn return_pages(pages: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = Layout::from_size_align(bytes, ALIGN) {
        // SAFETY: the caller guarantees that `zeroed_pages` has allocated this block with this layout.
        unsafe { System.dealloc(pages.as_ptr(), layout) };
    }
}

/// The system then hands out fresh pages without writing zeros to them.
const ALIGN: usize = 16;

pub(crate) fn statm() -> Option<Statm> {
    None
}

pub(crate) fn resident_peak() -> Option<u64> {
    None
}

pub(crate) fn resident_unique() -> Option<u64> {
    None
}

pub(crate) fn page_faults() -> Option<PageFaults> {
    None
}

pub(crate) fn thread_id() -> u32 {
    0
}

pub(crate) fn thread_stacks(_: &[(u32, usize)]) -> Vec<ThreadStack> {
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

pub(crate) fn ignore_triggers() {}

pub(crate) fn page_tables() -> Option<u64> {
    None
}

pub(crate) fn start_time() -> Option<(u64, u64)> {
    None
}

pub(crate) fn process_start() -> Option<u64> {
    None
}

/// Counts from the first call.
pub(crate) fn monotonic_nanoseconds() -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let since = FIRST.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nothing runs before `main` here.
macro_rules! call_before_main {
    ($function:path) => {
        const _: fn() = $function;
    };
}

pub(crate) use call_before_main;

pub(crate) fn runs_with_other_rights() -> bool {
    false
}

/// A listener that cannot start.
pub(crate) enum Listener {}

impl Listener {
    pub(crate) fn start(_: &Path, _: impl Fn(Peer) + Send + 'static) -> Result<Self, ListenError> {
        Err(ListenError::Unsupported)
    }
}

/// A peer that never connects.
pub(crate) enum Peer {}

impl Peer {
    pub(crate) fn allow(&mut self, _: Duration) {
        match *self {}
    }

    pub(crate) fn finish(self) {
        match self {}
    }
}

impl io::Read for Peer {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl io::Write for Peer {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

pub(crate) fn socket_folder() -> Result<PathBuf, ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn make_private_folder(_: &Path) -> Result<(), ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn check_private_folder(_: &Path) -> Result<(), ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    File::create_new(path)
}

pub(crate) fn on_triggers(_: impl Fn(Trigger) + Send + 'static) -> Result<(), ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn call_at_exit(_: fn()) {}

pub(crate) fn spawn_without_signals(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
