//! The process among others: where its dump goes, and what it hands on to those that it starts.

use core::ffi::{CStr, c_char};
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::first_process::{self, First};
use crate::options::Options;
use crate::system::memory::Arena;
use crate::system::process_id::{self, Known, Process};
use crate::system::{confined, fork};

static STRINGS: Arena = Arena::new();
/// The folder in which the process started: it may change its own.
static START_FOLDER: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static FIRST: Known = Known::nobody();
/// Who wrote the last dump whose name has a number, and which of the names it took.
static NUMBERED: Known = Known::nobody();
static NUMBERED_NAME: AtomicU32 = AtomicU32::new(0);

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

/// Remembers who the process is and where it started, or where the first one did. If it is the first one and the
/// variable `value` has room for that, it says so there, for those that it starts.
///
/// # Safety
///
/// `value` is the variable that `first` was read from, ends in 0, and nobody else uses it meanwhile.
pub(crate) unsafe fn start(first: Option<First>, value: *mut c_char) {
    let this = process_id::start();
    confined::start();
    if let Some(first) = first {
        if first.process == 0 {
            FIRST.store(this);
            let digits = first_process::digits(this.number, this.namespace);
            let place = value.wrapping_add(first.digits_at).cast::<u8>();
            // SAFETY: `first_process::split` found all digits at this offset of the value, and the caller of `start`
            // makes sure that nobody else uses the environment meanwhile.
            unsafe { place.copy_from_nonoverlapping(digits.as_ptr(), digits.len()) };
        } else {
            FIRST.store(Process { number: first.process, namespace: first.namespace });
        }
        if !first.folder.is_empty() {
            return START_FOLDER.store(first.folder.as_ptr().cast_mut(), Ordering::Release);
        }
    }
    const LONGEST: usize = 4096;
    let place = STRINGS.take(LONGEST).cast::<c_char>();
    if !place.is_null() {
        // SAFETY: so many bytes are there.
        let folder = unsafe { libc::getcwd(place, LONGEST) };
        START_FOLDER.store(folder, Ordering::Release);
    }
}

/// Whether processes that this one starts have to know it, for the names of their dumps.
pub(crate) fn hands_on(options: &Options) -> bool {
    let depends = match options.output {
        Some(pattern) => !pattern.starts_with('/') || !pattern.contains("%p"),
        None => options.dump_at_exit,
    };
    options.children && depends
}

/// Starts the program once more with our words in `$DMD` behind those of its user. `entry` is its entry in the
/// environment.
///
/// Those that the program starts, in whatever way, have to find them in its environment, and there is no room for
/// them: what stands there lies side by side, and programs that show a title measure it and write over it. So the
/// kernel lays it out with the words. Returns if that cannot be done; then the others do not know who is first.
///
/// # Safety
///
/// `environment` is the list of strings that ends in null, `entry` is one of them, nothing of the program has run,
/// and nobody else uses the environment meanwhile.
pub(crate) unsafe fn start_again(environment: *const *const c_char, entry: *const c_char, users: &[u8]) {
    let Ok(folder) = std::env::current_dir() else { return };
    let Ok(arguments) = fs::read("/proc/self/cmdline") else { return };
    let Some((file, arguments)) = command(&arguments) else { return };
    let words = first_process::words_for_first_process(&folder);
    let told = [&b"DMD="[..], users, words.as_bytes(), b"\0"].concat();
    let mut list = Vec::new();
    let mut at = environment;
    loop {
        // SAFETY: not beyond the null at the end.
        let string = unsafe { *at };
        list.push(if string == entry { told.as_ptr().cast() } else { string });
        if string.is_null() {
            break;
        }
        at = at.wrapping_add(1);
    }
    let arguments: Vec<*const c_char> =
        arguments.iter().map(|argument| argument.as_ptr().cast()).chain([null()]).collect();
    // SAFETY: a path that ends in 0, and two lists of such strings that end in null.
    unsafe { libc::execve(file.as_ptr(), arguments.as_ptr(), list.as_ptr()) };
}

/// What the kernel was told to start this program: a file, and arguments that end in 0.
fn command(arguments: &[u8]) -> Option<(&'static CStr, Vec<&[u8]>)> {
    // SAFETY: reads a vector that the kernel made and nobody changes.
    let file = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    if file == 0 {
        return None;
    }
    // SAFETY: the kernel's string, which ends in 0 and which nothing has written over before `main`.
    let file = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(file)) };
    let mut list: Vec<&[u8]> = arguments.split_inclusive(|byte| *byte == 0).collect();
    let named = fs::metadata(OsStr::from_bytes(file.to_bytes())).ok()?;
    let running = fs::metadata("/proc/self/exe").ok()?;
    if (named.dev(), named.ino()) != (running.dev(), running.ino()) {
        // A script: behind the interpreter and what its first line has for it.
        let script = list.iter().skip(1).position(|argument| *argument == file.to_bytes_with_nul())?;
        list.drain(..=script);
    }
    (!list.is_empty()).then_some((file, list))
}

/// Takes an entry out of the environment of this process: programs that it starts are not recorded. To be called
/// before `main`, and before there is a second thread.
///
/// # Safety
///
/// `entry` points into the list of strings that ends in null, and nobody else uses it meanwhile.
pub(crate) unsafe fn leave_out(mut entry: *mut *mut c_char) {
    loop {
        // SAFETY: not beyond the null at the end.
        let next = unsafe { *entry.wrapping_add(1) };
        // SAFETY: an entry of the list.
        unsafe { *entry = next };
        if next.is_null() {
            return;
        }
        entry = entry.wrapping_add(1);
    }
}

/// A name of a dump, and whether it may be that of another process.
#[derive(Debug)]
pub(crate) enum Output {
    /// Whatever lies there is written over.
    At(PathBuf),
    /// The first of these that no other process has.
    Numbered(Numbered),
}

/// Names with the number of the process, and then with a second one, since namespaces have the same numbers.
#[derive(Debug)]
pub(crate) struct Numbered {
    pattern: &'static str,
    process: Process,
}

impl Numbered {
    pub(crate) fn name(&self, which: u32) -> PathBuf {
        let number = match which {
            0 => self.process.number.to_string(),
            _ => format!("{}-{}", self.process.number, which + 1),
        };
        let name = if self.pattern.contains("%p") {
            self.pattern.replace("%p", &number)
        } else {
            with_number(self.pattern, &number)
        };
        absolute(Path::new(&name))
    }

    /// Which of the names this process has taken before.
    pub(crate) fn taken(&self) -> Option<u32> {
        let is_mine = NUMBERED.get().is_some_and(|process| process.is(self.process));
        is_mine.then(|| NUMBERED_NAME.load(Ordering::Relaxed))
    }

    pub(crate) fn take(&self, which: u32) {
        NUMBERED_NAME.store(which, Ordering::Relaxed);
        NUMBERED.store(self.process);
    }
}

/// Where the dump at the end of this process goes.
pub(crate) fn output(options: &Options) -> Output {
    let pattern = options.output.unwrap_or("dmd-%p.json.gz");
    let process = Process::this();
    let is_first = !fork::is_child() && FIRST.get().is_none_or(|first| first.is(process));
    if is_first && !pattern.contains("%p") {
        return Output::At(absolute(Path::new(pattern)));
    }
    Output::Numbered(Numbered { pattern, process })
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
fn with_number(pattern: &str, number: &str) -> String {
    let name_start = pattern.rfind('/').map_or(0, |slash| slash + 1);
    let name = &pattern[name_start..];
    let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
    let (head, tail) = pattern.split_at(name_start + dot);
    format!("{head}-{number}{tail}")
}
