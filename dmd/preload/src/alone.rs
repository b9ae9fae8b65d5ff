//! Calls that need a process with one thread, and calls that change the rights of a thread. The engine threads end
//! before such a call, and start again after it with the rights that the calling thread then has. So during the call
//! the process has only the program's threads, and no thread keeps rights that the program drops.

use core::ffi::{c_char, c_int, c_void};

use engine::__private::without_engine_threads;

use crate::real;

macro_rules! alone {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// Behaves as the C library's function of this name.
        ///
        /// # Safety
        ///
        /// The contract of the C library's function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // Make sure that the C library's functions are looked up, even if the program has not allocated yet.
            real::known();
            // SAFETY: the program guarantees that the arguments suit this function; they are passed on unchanged.
            without_engine_threads(|| unsafe { real::$name($($argument),*) })
        }
    )*};
}

alone! {
    unshare(flags: c_int);
    setns(namespace: c_int, kind: c_int);
    setuid(user: libc::uid_t);
    setgid(group: libc::gid_t);
    seteuid(user: libc::uid_t);
    setegid(group: libc::gid_t);
    setreuid(real: libc::uid_t, effective: libc::uid_t);
    setregid(real: libc::gid_t, effective: libc::gid_t);
    setresuid(real: libc::uid_t, effective: libc::uid_t, saved: libc::uid_t);
    setresgid(real: libc::gid_t, effective: libc::gid_t, saved: libc::gid_t);
    setgroups(count: usize, groups: *const libc::gid_t);
    initgroups(user: *const c_char, group: libc::gid_t);
    capset(header: *mut c_void, data: *const c_void);
}

/// Passes the names of the system calls behind these functions to a macro. A program may also make these system calls
/// by `syscall`.
macro_rules! with_calls_for_one_thread {
    ($macro:ident) => {
        $macro! {
            SYS_unshare,
            SYS_setns,
            SYS_setuid,
            SYS_setgid,
            SYS_setreuid,
            SYS_setregid,
            SYS_setresuid,
            SYS_setresgid,
            SYS_setgroups,
            SYS_capset
        }
    };
}
pub(crate) use with_calls_for_one_thread;

/// Whether this number is one of these system calls.
pub(crate) fn is_for_one_thread(number: libc::c_long) -> bool {
    macro_rules! is_any_of {
        ($($name:ident),*) => { matches!(number, $(libc::$name)|*) };
    }
    with_calls_for_one_thread!(is_any_of)
}
