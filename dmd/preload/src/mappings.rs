//! `mmap` and its family: each function makes the real call, and the engine records the mapping with its stack.
//!
//! The C library makes its own mappings (heaps, stacks of threads, files of the loader) without these functions. A dump
//! finds these mappings in the kernel's list. Calls that change only pages, such as `madvise`, are not hooked: the
//! kernel's page map shows their effect.

use core::ffi::{c_int, c_void};

use engine::__private::{ForgottenMapping, PreloadRecording, is_engine_thread, record_mapping, recording};

use crate::real;

/// Whether the engine records mappings of this thread.
#[inline(always)]
fn is_recorded() -> bool {
    matches!(recording(), PreloadRecording::Yes | PreloadRecording::Sample) && !is_engine_thread()
}

/// Makes the system call itself. The loader and constructors of other libraries may call `mmap` before the real
/// functions are known.
unsafe fn mmap_by_number(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the program guarantees the contract of `mmap`, whose arguments are those of the system call.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, bytes, access, flags, file, offset) };
    core::ptr::with_exposed_provenance_mut(mapped as usize)
}

/// Records a new mapping. Inlined, so that the hook's frame is the innermost of the stack.
#[inline(always)]
fn record(mapped: *mut c_void, bytes: usize, flags: c_int) {
    if mapped != libc::MAP_FAILED && is_recorded() {
        let is_file = flags & libc::MAP_ANONYMOUS == 0;
        record_mapping(mapped.expose_provenance(), whole_pages(bytes), is_file);
    }
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let mapped = match real::are_known() {
        // SAFETY: the real functions are known, and the program guarantees the contract.
        true => unsafe { real::mmap(at, bytes, access, flags, file, offset) },
        // SAFETY: the program guarantees the contract.
        false => unsafe { mmap_by_number(at, bytes, access, flags, file, offset) },
    };
    record(mapped, bytes, flags);
    mapped
}

/// Behaves as C's function of this name: on these systems, it has the same arguments as [`mmap`].
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off64_t,
) -> *mut c_void {
    let mapped = match real::are_known() {
        // SAFETY: the real functions are known, and the program guarantees the contract.
        true => unsafe { real::mmap64(at, bytes, access, flags, file, offset) },
        // SAFETY: the program guarantees the contract.
        false => unsafe { mmap_by_number(at, bytes, access, flags, file, offset) },
    };
    record(mapped, bytes, flags);
    mapped
}

/// Behaves as C's function of this name. The engine forgets the mapping first: after the real call, another thread may
/// already have mapped these addresses.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(at: *mut c_void, bytes: usize) -> c_int {
    let forgotten = is_recorded().then(|| ForgottenMapping::new(at.addr(), whole_pages(bytes)));
    let failed = match real::are_known() {
        // SAFETY: the real functions are known, and the program guarantees the contract.
        true => unsafe { real::munmap(at, bytes) },
        // SAFETY: the program guarantees the contract.
        false => unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as c_int },
    };
    if failed != 0
        && let Some(forgotten) = forgotten
    {
        forgotten.restore();
    }
    failed
}

/// Behaves as C's function of this name. The new mapping is recorded with the stack of this call. In C, the last
/// argument is optional; on these processors, it is passed in the same register either way.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mremap(
    at: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    new_at: *mut c_void,
) -> *mut c_void {
    let forgotten = is_recorded().then(|| ForgottenMapping::new(at.addr(), whole_pages(bytes)));
    let mapped = match real::are_known() {
        // SAFETY: the real functions are known, and the program guarantees the contract.
        true => unsafe { real::mremap(at, bytes, new_bytes, flags, new_at) },
        // SAFETY: the program guarantees the contract.
        false => core::ptr::with_exposed_provenance_mut(unsafe {
            libc::syscall(libc::SYS_mremap, at, bytes, new_bytes, flags, new_at) as usize
        }),
    };
    if let Some(forgotten) = forgotten {
        let is_file = forgotten.is_file();
        if mapped == libc::MAP_FAILED {
            forgotten.restore();
            return mapped;
        }
        // With this flag, the old mapping still exists.
        if flags & libc::MREMAP_DONTUNMAP != 0 {
            forgotten.restore();
        }
        record_mapping(mapped.expose_provenance(), whole_pages(new_bytes), is_file);
    }
    mapped
}

/// The bytes of all pages of a mapping.
fn whole_pages(bytes: usize) -> usize {
    // If rounding up overflows, the length does not matter: the kernel refuses such a call.
    bytes.checked_next_multiple_of(page()).unwrap_or(bytes)
}

/// The size of a page in bytes.
fn page() -> usize {
    // SAFETY: the call changes nothing.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }.max(1)
}
