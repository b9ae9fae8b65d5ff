//! Libraries that the program loads while it runs, such as modules of Python. A library may contain its own allocator.
//!
//! A program finds the functions of a library that it has loaded with `dlsym`. So `libdmd.so` exports a `dlsym` that
//! first looks for new libraries. If the process has other threads, only words are redirected, and an allocator with
//! references in code is refused. `libdmd.so` exports no `dlopen`: the C library's `dlopen` finds files relative to its
//! caller.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::__private::{is_confined, is_engine_thread, may_record};

use crate::redirections::RunningThreads;
use crate::{later_objects, real, static_allocators};

/// The number of libraries that the loader has loaded so far, at the last look. [`UNKNOWN`] before the program runs.
static LOADED: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX;

/// Whether a thread looks at new libraries.
static LOOKING: AtomicBool = AtomicBool::new(false);

/// From now on, `dlsym` looks for new libraries, if the engine records or waits for requests.
pub(crate) fn start() {
    if may_record() {
        LOADED.store(loaded(), Ordering::Relaxed);
    }
}

unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, count: *mut c_void) -> c_int {
    // SAFETY: the loader passes valid information.
    let adds = unsafe { (*info).dlpi_adds };
    // SAFETY: `loaded` passes a place for the number.
    unsafe { *count.cast::<u64>() = adds };
    1
}

/// The number of libraries that the loader has loaded so far.
fn loaded() -> u64 {
    let mut count = 0_u64;
    // SAFETY: `first` gets a place for the number.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut count).cast()) };
    count
}

/// Hooks the allocators of new libraries. Returns the C library's `dlsym`.
extern "C" fn hook_new_libraries() -> *mut c_void {
    later_objects::look();
    let known = LOADED.load(Ordering::Relaxed);
    // A filter of system calls may end the process, and an engine thread must not wait for the loader.
    if known != UNKNOWN && !is_confined() && !is_engine_thread() {
        let now = loaded();
        if now != known && !LOOKING.swap(true, Ordering::Acquire) {
            static_allocators::hook_new(RunningThreads::now());
            LOADED.store(now, Ordering::Relaxed);
            LOOKING.store(false, Ordering::Release);
        }
    }
    real::dlsym_address()
}

/// Behaves as the C library's function of this name. This function jumps to the C library's `dlsym`, which must see the
/// program as its caller: with `RTLD_NEXT`, it searches the libraries after its caller's library.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlsym(library: *mut c_void, name: *const core::ffi::c_char) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {hook}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        hook = sym hook_new_libraries,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "bl {hook}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        hook = sym hook_new_libraries,
    );
}
