//! `syscall`, and calls that install filters of system calls. This library sees them here and informs the engine at
//! once: under a filter, even the system call that reads the filters may end the process. `syscall` makes the system
//! call without a frame of its own, like the C library's function: a system call may return on another stack, or in a
//! child that shares this stack.

use core::ffi::{c_int, c_long, c_ulong};

use engine::__private::{confined, without_engine_threads};

use crate::alone::{is_for_one_thread, with_calls_for_one_thread};

/// Makes a system call. If it fails, sets `errno` and returns -1, like the C library's function.
///
/// # Safety
///
/// The contract of the system call itself.
// Unwinders need to know that the function has no frame: threads wait in it.
#[unsafe(naked)]
unsafe extern "C" fn raw(
    number: c_long,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
    e: c_ulong,
    f: c_ulong,
) -> c_long {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "mov rdi, rax",
        "jmp {}",
        ".cfi_endproc",
        sym failed,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, #4095",
        "b.hs 2f",
        "ret",
        "2:",
        "b {}",
        ".cfi_endproc",
        sym failed,
    );
}

/// The start of the code in which a thread waits while it is in `syscall`.
pub(crate) fn entry() -> usize {
    (raw as *const ()).addr()
}

extern "C" fn failed(result: c_long) -> c_long {
    // SAFETY: the function has no precondition.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the C library gives each thread a valid pointer to its own errno.
    unsafe { *errno = -result as c_int };
    -1
}

macro_rules! syscall {
    ($($number:ident),*) => {
        /// Behaves as the C library's function of this name.
        ///
        /// # Safety
        ///
        /// The contract of the system call itself.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn syscall(
            number: c_long,
            a: c_ulong,
            b: c_ulong,
            c: c_ulong,
            d: c_ulong,
            e: c_ulong,
            f: c_ulong,
        ) -> c_long {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "cmp rdi, {seccomp}",
                "je {watched}",
                "cmp rdi, {prctl}",
                "je {watched}",
                $(concat!("cmp rdi, {", stringify!($number), "}"), "je {watched}",)*
                "jmp {raw}",
                seccomp = const libc::SYS_seccomp,
                prctl = const libc::SYS_prctl,
                $($number = const libc::$number,)*
                watched = sym watched,
                raw = sym raw,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "cmp x0, {seccomp}",
                "b.eq 2f",
                "cmp x0, {prctl}",
                "b.eq 2f",
                $(concat!("cmp x0, {", stringify!($number), "}"), "b.eq 2f",)*
                "b {raw}",
                "2:",
                "b {watched}",
                seccomp = const libc::SYS_seccomp,
                prctl = const libc::SYS_prctl,
                $($number = const libc::$number,)*
                watched = sym watched,
                raw = sym raw,
            );
        }
    };
}

with_calls_for_one_thread!(syscall);

/// Makes a system call that may install a filter, or that needs a process with one thread.
unsafe extern "C" fn watched(
    number: c_long,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
    e: c_ulong,
    f: c_ulong,
) -> c_long {
    if is_for_one_thread(number) {
        // SAFETY: the program guarantees that the arguments suit this system call; they are passed on unchanged.
        return without_engine_threads(|| unsafe { raw(number, a, b, c, d, e, f) });
    }
    // SAFETY: as above.
    let result = unsafe { raw(number, a, b, c, d, e, f) };
    let filter = c_ulong::from(libc::SECCOMP_SET_MODE_FILTER);
    let strict = c_ulong::from(libc::SECCOMP_SET_MODE_STRICT);
    if result >= 0 {
        if number == libc::SYS_prctl && a == libc::PR_SET_SECCOMP as c_ulong {
            confined(false);
        } else if number == libc::SYS_seccomp && (a == filter || a == strict) {
            confined(a == filter && b & libc::SECCOMP_FILTER_FLAG_TSYNC != 0);
        }
    }
    result
}

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The contract of the system call itself.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    // SAFETY: the program guarantees that the arguments suit this system call; they are passed on unchanged.
    unsafe { watched(libc::SYS_prctl, option as c_ulong, a, b, c, d, 0) as c_int }
}
