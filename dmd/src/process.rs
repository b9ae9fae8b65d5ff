//! The process among others: where its dump goes, and what it hands on to those that it starts.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::engine::ENGINE;
use crate::fork;
use crate::memory::Arena;

/// The words by which children learn that they are not the first: its number and, to the end of the
/// variable, the folder in which it started.
const FIRST_PROCESS: &[u8] = b" --first-process=";

static STRINGS: Arena = Arena::new();
/// The folder in which the process started: it may change its own.
static START_FOLDER: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Whether a filter of system calls was installed since the start: opening a file may end the process.
pub(crate) fn is_confined() -> bool {
    CONFINED_AT_START.load(Ordering::Relaxed) == 0 && filters() != 0
}

static CONFINED_AT_START: AtomicI32 = AtomicI32::new(0);

fn filters() -> i32 {
    // SAFETY: asks a question; strict confinement, which would end the process here, ends it at `exit` too.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) }
}

/// What `$DMD` says of the first process: its number, and the folder in which it started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub(crate) process: u32,
    folder: &'static CStr,
}

/// `$DMD` as its user wrote it, and the first process, if this is not the first.
pub(crate) fn split_our_words(variable: &'static CStr) -> (&'static [u8], Option<First>) {
    let all = variable.to_bytes();
    let Some(at) = all.windows(FIRST_PROCESS.len()).position(|words| words == FIRST_PROCESS) else {
        return (all, None);
    };
    let number_at = at + FIRST_PROCESS.len();
    let digits = all[number_at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let process = core::str::from_utf8(&all[number_at..number_at + digits]).ok().and_then(|n| n.parse().ok());
    let folder = variable.to_bytes_with_nul().get(number_at + digits + 1..);
    let folder = folder.and_then(|folder| CStr::from_bytes_with_nul(folder).ok()).unwrap_or(c"");
    (&all[..at], process.map(|process| First { process, folder }))
}

/// A copy of the value of `$DMD`: a program that changes its title writes over its environment.
pub(crate) fn keep(variable: &'static CStr) -> &'static CStr {
    let text = variable.to_bytes_with_nul();
    let place = STRINGS.take(text.len());
    if place.is_null() {
        return variable;
    }
    // SAFETY: zeroed bytes that nobody else has.
    let copy = unsafe { core::slice::from_raw_parts_mut(place, text.len()) };
    copy.copy_from_slice(text);
    CStr::from_bytes_with_nul(copy).unwrap_or(variable)
}

/// Remembers the folder in which the process started, or the first one if this is not it.
pub(crate) fn start(first: Option<First>) {
    CONFINED_AT_START.store(filters(), Ordering::Relaxed);
    if let Some(first) = first
        && !first.folder.is_empty()
    {
        return START_FOLDER.store(first.folder.as_ptr().cast_mut(), Ordering::Release);
    }
    const LONGEST: usize = 4096;
    let place = STRINGS.take(LONGEST).cast::<c_char>();
    if !place.is_null() {
        // SAFETY: so many bytes are there.
        let folder = unsafe { libc::getcwd(place, LONGEST) };
        START_FOLDER.store(folder, Ordering::Release);
    }
}

/// Changes `$DMD` in the environment of this process, for those that it starts: they learn that they are
/// not the first, or are not recorded. To be called before `main`, and before there is a second thread.
///
/// # Safety
///
/// `environment` is the list of strings that ends in null, and nobody else uses it meanwhile.
pub(crate) unsafe fn prepare_children(mut environment: *mut *mut c_char, children: bool, first: bool) {
    if environment.is_null() {
        return;
    }
    loop {
        // SAFETY: not beyond the null at the end.
        let entry = unsafe { *environment };
        if entry.is_null() {
            return;
        }
        // SAFETY: strings of the environment end in 0.
        let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
        if text.starts_with(b"DMD=") {
            break;
        }
        environment = environment.wrapping_add(1);
    }
    // SAFETY: the entry found above.
    let entry = unsafe { *environment };
    // SAFETY: strings of the environment end in 0.
    let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
    if !children {
        let mut at = environment;
        loop {
            // SAFETY: not beyond the null at the end.
            let next = unsafe { *at.wrapping_add(1) };
            // SAFETY: an entry of the list.
            unsafe { *at = next };
            if next.is_null() {
                return;
            }
            at = at.wrapping_add(1);
        }
    }
    if !first {
        return;
    }
    let folder = START_FOLDER.load(Ordering::Acquire);
    let folder = if folder.is_null() {
        &[]
    } else {
        // SAFETY: a string of `start`, which ends in 0.
        unsafe { CStr::from_ptr(folder) }.to_bytes()
    };
    let room = text.len() + FIRST_PROCESS.len() + 16 + folder.len();
    let place = STRINGS.take(room);
    if place.is_null() {
        return;
    }
    // SAFETY: zeroed bytes that nobody else has.
    let place = unsafe { core::slice::from_raw_parts_mut(place, room) };
    let (head, rest) = place.split_at_mut(text.len());
    head.copy_from_slice(text);
    let (word, number) = rest.split_at_mut(FIRST_PROCESS.len());
    word.copy_from_slice(FIRST_PROCESS);
    let mut digits = [0; 10];
    let mut pid = std::process::id();
    let mut start = digits.len();
    while pid != 0 {
        start -= 1;
        digits[start] = b'0' + (pid % 10) as u8;
        pid /= 10;
    }
    let digits = &digits[start..];
    number[..digits.len()].copy_from_slice(digits);
    number[digits.len()] = b' ';
    number[digits.len() + 1..][..folder.len()].copy_from_slice(folder);
    // SAFETY: an entry of the list; the new string ends in 0.
    unsafe { *environment = place.as_mut_ptr().cast() };
}

/// Where the dump at the end of this process goes.
pub(crate) fn output() -> PathBuf {
    let options = ENGINE.setup().options;
    let pid = std::process::id();
    let pattern = options.output.unwrap_or("dmd-%p.json.gz");
    let is_first = !fork::is_child() && (options.first_process == 0 || options.first_process == pid);
    let name = if pattern.contains("%p") {
        pattern.replace("%p", &pid.to_string())
    } else if is_first {
        pattern.to_owned()
    } else {
        with_number(pattern, pid)
    };
    absolute(Path::new(&name))
}

/// A path as it was at the start of the process.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let folder = START_FOLDER.load(Ordering::Acquire);
    if path.is_absolute() || folder.is_null() {
        return path.to_owned();
    }
    // SAFETY: a string of `getcwd`, kept for good.
    let folder = unsafe { CStr::from_ptr(folder) };
    Path::new(OsStr::from_bytes(folder.to_bytes())).join(path)
}

/// `a/b.json.gz` gives `a/b-7.json.gz`.
fn with_number(pattern: &str, pid: u32) -> String {
    let name_start = pattern.rfind('/').map_or(0, |slash| slash + 1);
    let name = &pattern[name_start..];
    let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
    let (head, tail) = pattern.split_at(name_start + dot);
    format!("{head}-{pid}{tail}")
}
