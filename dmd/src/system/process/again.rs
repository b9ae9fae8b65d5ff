//! What a process hands on to the processes that it starts: words in `$DMD`. It may have to start anew for them.

use core::ffi::{CStr, c_char};
use core::ptr::null;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use dmd_format::first_process;

use crate::options::Options;

/// Whether processes that this one starts must know it, for the names of their dumps.
pub(crate) fn hands_on(options: &Options) -> bool {
    let depends_on = |pattern: &str| !pattern.starts_with('/') || !pattern.contains("%p");
    let depends = options.output.map_or(options.dump_at_exit, depends_on);
    options.children && (depends || options.record.is_some_and(depends_on))
}

/// Starts the program once more, with our words behind its user's in `$DMD`. `entry` is the variable's entry in the
/// environment.
///
/// Processes that the program starts, in whatever way, must find the words in its environment, which has no room
/// for them: its strings lie side by side, and programs that show a title measure it and write over it. So the
/// kernel lays it out anew, with the words. Returns if that fails; then the other processes do not know which one
/// is the first.
///
/// # Safety
///
/// `environment` is the list of strings that ends in null, `entry` is one of them, nothing of the program has run,
/// and no other code uses the environment meanwhile.
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
    // SAFETY: `getauxval` reads a vector that the kernel made and that stays as it is.
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
        // A script: its interpreter, and what its first line has for that, come first.
        let script = list.iter().skip(1).position(|argument| *argument == file.to_bytes_with_nul())?;
        list.drain(..=script);
    }
    (!list.is_empty()).then_some((file, list))
}

/// Removes an entry from the environment of this process, so that programs that it starts are not recorded. Callers
/// do so before `main`, while there is one thread.
///
/// # Safety
///
/// `entry` points into the list of strings that ends in null, and no other code uses it meanwhile.
pub(crate) unsafe fn leave_out(mut entry: *mut *mut c_char) {
    loop {
        // SAFETY: `entry` is before the null that ends the list, so that the next one is not beyond it.
        let next = unsafe { *entry.wrapping_add(1) };
        // SAFETY: `entry` is in the list, which no other code uses: the caller promises that.
        unsafe { *entry = next };
        if next.is_null() {
            return;
        }
        entry = entry.wrapping_add(1);
    }
}
