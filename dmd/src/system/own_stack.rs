//! A separate stack for writing a dump: a process may end on a signal's small stack, or on a stack that is nearly
//! full.

use core::ffi::c_void;

use crate::system::{memory, reserve};

const PAGE: usize = 4096;
/// The size of the stack. A dump itself needs up to 10 KiB. Backends of flate2 make their tables on the stack before
/// they move them to the heap: in a debug build, the backend in Rust needs about 500 KiB. Untouched pages take no
/// memory.
const BYTES: usize = 2 << 20;

/// Runs `body` on a separate stack, or on the caller's stack if there is no memory.
pub(crate) fn run<T, F: FnOnce() -> T>(body: F) -> T {
    if let Some(stack) = reserve::stack() {
        let mut work = StackWork { body: Some(body), result: None };
        // SAFETY: the reserve has this many bytes for a stack that only this thread uses, and `work_on` takes `work`.
        unsafe { call_on(stack + reserve::STACK, work_on::<T, F>, (&raw mut work).cast()) };
        return work.result.expect("the work was done");
    }
    let stack = memory::map_for_dump(BYTES);
    if stack.is_null() {
        return body();
    }
    // SAFETY: this is the lowest page of the mapping, and no code uses it yet.
    unsafe { libc::mprotect(stack.cast(), PAGE, libc::PROT_NONE) };
    let mut work = StackWork { body: Some(body), result: None };
    // SAFETY: `top` is the end of a mapping that is large enough, and `work_on` takes `work`.
    unsafe { call_on(stack.expose_provenance() + BYTES, work_on::<T, F>, (&raw mut work).cast()) };
    // SAFETY: this function mapped the stack with this size, and `call_on` has returned from it.
    unsafe { memory::unmap_for_dump(stack, BYTES) };
    work.result.expect("the work was done")
}

struct StackWork<T, F> {
    body: Option<F>,
    result: Option<T>,
}

extern "C" fn work_on<T, F: FnOnce() -> T>(work: *mut c_void) {
    // SAFETY: `run` passes its `work`, and waits during the call.
    let work = unsafe { &mut *work.cast::<StackWork<T, F>>() };
    work.result = work.body.take().map(|body| body());
}

/// Calls a function on the stack that ends at `top`, a multiple of 16.
#[unsafe(naked)]
unsafe extern "C" fn call_on(top: usize, function: extern "C" fn(*mut c_void), data: *mut c_void) {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        "ret",
    );
}
