//! Linux: procfs, and glibc's mallinfo2.

use super::CHeap;

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn c_heap() -> Option<CHeap> {
    // SAFETY: no precondition; glibc 2.33 and later have it, and std's own minimum is below that,
    // so the symbol is looked up.
    let info = unsafe { libc::mallinfo2() };
    Some(CHeap {
        allocated: (info.hblkhd + info.uordblks) as u64,
        committed: (info.arena + info.hblkhd) as u64,
    })
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn c_heap() -> Option<CHeap> {
    None
}

#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn trim_c_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no precondition.
    unsafe {
        libc::malloc_trim(0)
    };
}
