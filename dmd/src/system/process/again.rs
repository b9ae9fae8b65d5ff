//! Passes words in `$DMD` to the processes that this process starts. For this, the process may have to restart.

use core::ffi::{CStr, c_char};
use core::ptr::null;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use dmd_format::first_process;

use crate::options::Options;

/// Whether programs that this process starts need the number or the folder of this process for the names of their
/// dumps and recordings.
pub(crate) fn hands_on(options: &Options) -> bool {
    let depends_on = |pattern: &str| !pattern.starts_with('/') || !pattern.contains("%p");
    let depends = options.output.map_or(options.dump_at_exit, depends_on);
    options.children && (depends || options.record.is_some_and(depends_on))
}

/// Restarts the program, with DMD's words after the user's words in `$DMD`. `entry` is the variable's entry in the
/// environment.
///
/// Processes that the program starts must find the words in its environment, no matter how it starts them. The
/// environment has no room for the words: its strings are adjacent, and programs that show a title measure the strings
/// and overwrite them. So the kernel makes a new environment that contains the words. The function returns if that
/// fails. Then other processes cannot find out which process is the first one.
///
/// # Safety
///
/// `environment` is the list of strings that ends in null, and `entry` is one of them. No code of the program has run,
/// and no other code uses the environment during the call.
pub(crate) unsafe fn start_again(environment: *const *const c_char, entry: *const c_char, users: &[u8]) {
    let Ok(folder) = std::env::current_dir() else { return };
    let Ok(arguments) = fs::read("/proc/self/cmdline") else { return };
    let Some((file, arguments)) = command(&arguments) else { return };
    let words = first_process::suffix(&folder);
    let told = [&b"DMD="[..], users, words.as_bytes(), b"\0"].concat();
    let mut list = Vec::new();
    let mut at = environment;
    loop {
        // SAFETY: `at` is not beyond the null that ends the list.
        let string = unsafe { *at };
        list.push(if string == entry { told.as_ptr().cast() } else { string });
        if string.is_null() {
            break;
        }
        at = at.wrapping_add(1);
    }
    let arguments: Vec<*const c_char> =
        arguments.iter().map(|argument| argument.as_ptr().cast()).chain([null()]).collect();
    // SAFETY: the path ends in 0, and both lists of such strings end in null.
    unsafe { libc::execve(file.as_ptr(), arguments.as_ptr(), list.as_ptr()) };
}

/// The file and the arguments with which the kernel started this program. Each argument ends in 0.
fn command(arguments: &[u8]) -> Option<(&'static CStr, Vec<&[u8]>)> {
    // SAFETY: `getauxval` reads a vector that the kernel made and that does not change.
    let file = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    if file == 0 {
        return None;
    }
    // SAFETY: the kernel's string ends in 0, and is intact before `main`.
    let file = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(file)) };
    let mut list: Vec<&[u8]> = arguments.split_inclusive(|byte| *byte == 0).collect();
    let named = fs::metadata(OsStr::from_bytes(file.to_bytes())).ok()?;
    let running = fs::metadata("/proc/self/exe").ok()?;
    if (named.dev(), named.ino()) != (running.dev(), running.ino()) {
        // The program is a script: the list starts with the interpreter and the arguments from the script's first
        // line.
        let script = list.iter().skip(1).position(|argument| *argument == file.to_bytes_with_nul())?;
        list.drain(..=script);
    }
    (!list.is_empty()).then_some((file, list))
}

/// Removes an entry from the environment of this process, so that programs that the process starts are not recorded.
/// Call this before `main`, while there is one thread.
///
/// # Safety
///
/// `entry` points into the list of strings that ends in null, and no other code uses the list during the call.
pub(crate) unsafe fn leave_out(mut entry: *mut *mut c_char) {
    loop {
        // SAFETY: `entry` is before the null that ends the list, so the next entry is inside of the list.
        let next = unsafe { *entry.wrapping_add(1) };
        // SAFETY: `entry` is in the list, and the caller guarantees that no other code uses the list.
        unsafe { *entry = next };
        if next.is_null() {
            return;
        }
        entry = entry.wrapping_add(1);
    }
}
