//! The process among other processes: the path of its dump, and the values that it passes to processes that it starts.

#[cfg(engine = "native")]
mod again;

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::path::{Path, PathBuf};

use dmd_format::first_process::{self, FirstProcess};

use crate::options::Options;
use crate::system::memory::Arena;
use crate::system::path_bytes::path_of;
use crate::system::process_id::{self, ProcessCell, ProcessIdentity};
#[cfg(target_os = "linux")]
use crate::system::raw_file;
#[cfg(target_os = "linux")]
use crate::system::session_peer::SessionPeer;
use crate::system::{confined, fork};
#[cfg(engine = "native")]
pub(crate) use again::{hands_on, leave_out, start_again};

static STRINGS: Arena = Arena::new();
/// The folder in which the process started. The process may change its current folder later.
static START_FOLDER: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static FIRST: ProcessCell = ProcessCell::nobody();
/// The process that last took a numbered name for its dump.
static NUMBERED: ProcessCell = ProcessCell::nobody();
static NUMBERED_NAME: AtomicU32 = AtomicU32::new(0);

/// Copies the value of `$DMD`: a program that changes its title overwrites its environment.
pub(crate) fn keep(variable: &'static CStr) -> &'static CStr {
    let text = variable.to_bytes_with_nul();
    let place = STRINGS.take(text.len());
    if place.is_null() {
        return variable;
    }
    // SAFETY: `STRINGS` returns zeroed bytes that no other code uses.
    let copy = unsafe { core::slice::from_raw_parts_mut(place, text.len()) };
    copy.copy_from_slice(text);
    CStr::from_bytes_with_nul(copy).unwrap_or(variable)
}

/// Stores this process and the folder in which it started. If `first` contains a process or a folder, stores these
/// instead. If this process is the first one and `value` has room, writes its number into `value`, for the processes
/// that it starts.
///
/// # Safety
///
/// `value` is the variable from which `first` was read. It ends in 0, and no other code uses it during the call.
pub(crate) unsafe fn start(first: Option<FirstProcess>, value: *mut c_char) {
    let this = process_id::start();
    confined::start();
    if let Some(first) = first {
        if first.process == 0 {
            FIRST.store(this);
            let digits = first_process::digits(this.number, this.namespace);
            let place = value.wrapping_add(first.digits_at).cast::<u8>();
            // SAFETY: `first_process::split` found all digits at this offset of the value. The caller of `start`
            // guarantees that no other code uses the environment during the call.
            unsafe { place.copy_from_nonoverlapping(digits.as_ptr(), digits.len()) };
        } else {
            FIRST.store(ProcessIdentity { number: first.process, namespace: first.namespace });
        }
        if !first.folder.is_empty() {
            return START_FOLDER.store(first.folder.as_ptr().cast_mut(), Ordering::Release);
        }
    }
    const LONGEST: usize = 4096;
    let place = STRINGS.take(LONGEST).cast::<c_char>();
    if !place.is_null() {
        // SAFETY: `STRINGS` returned `LONGEST` bytes.
        let folder = unsafe { libc::getcwd(place, LONGEST as _) };
        START_FOLDER.store(folder, Ordering::Release);
    }
}

/// The destination of a dump.
#[derive(Debug)]
pub(crate) enum DumpOutput {
    /// The dump replaces the file at this path.
    At(PathBuf),
    /// The dump gets the first of these names that no other process has.
    Numbered(NumberedNames),
    /// The peer of a session of tracking gets the dump, compressed.
    #[cfg(target_os = "linux")]
    Peer(SessionPeer),
}

/// Names with the number of the process. If a name is taken, the next names also have a second number, since processes
/// in two namespaces may have the same number.
#[derive(Debug)]
pub(crate) struct NumberedNames {
    pattern: &'static str,
    process: ProcessIdentity,
}

/// The possible names of a recording.
#[derive(Debug)]
pub(crate) struct RecordingNames {
    /// The name without a number, if this process may use it; otherwise `None`.
    pub(crate) plain: Option<PathBuf>,
    /// The names to try if `plain` is `None` or another recording has that name. The process uses the first name
    /// without a file.
    pub(crate) numbered: NumberedNames,
}

impl NumberedNames {
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

    /// The index of the name that this process took before; `None` if the process has not taken a name.
    pub(crate) fn taken(&self) -> Option<u32> {
        let is_mine = NUMBERED.get().is_some_and(|process| process.is(self.process));
        is_mine.then(|| NUMBERED_NAME.load(Ordering::Relaxed))
    }

    pub(crate) fn take(&self, which: u32) {
        NUMBERED_NAME.store(which, Ordering::Relaxed);
        NUMBERED.store(self.process);
    }
}

/// The destination of the dump at the end of this process.
pub(crate) fn output(options: &Options) -> DumpOutput {
    let pattern = options.output.unwrap_or("dmd-%p.json.gz");
    let process = ProcessIdentity::this();
    plain_name(pattern, process)
        .map_or(DumpOutput::Numbered(NumberedNames { pattern, process }), DumpOutput::At)
}

/// The possible names of this process's recording.
pub(crate) fn recording_names(pattern: &'static str) -> RecordingNames {
    let process = ProcessIdentity::this();
    RecordingNames { plain: plain_name(pattern, process), numbered: NumberedNames { pattern, process } }
}

/// The name without a number, if this process is the first one; otherwise `None`.
fn plain_name(pattern: &str, process: ProcessIdentity) -> Option<PathBuf> {
    let is_first = !fork::is_child() && FIRST.get().is_none_or(|first| first.is(process));
    (is_first && !pattern.contains("%p")).then(|| absolute(Path::new(pattern)))
}

/// Makes a path absolute. A relative path starts at the folder in which the process started.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let folder = START_FOLDER.load(Ordering::Acquire);
    if path.is_absolute() || folder.is_null() {
        return path.to_owned();
    }
    // SAFETY: the string comes from `getcwd` or from `keep`, and neither is ever freed.
    let folder = unsafe { CStr::from_ptr(folder) };
    path_of(folder.to_bytes()).join(path)
}

/// Inserts a number before the extension: `a/b.json.gz` becomes `a/b-7.json.gz`.
fn with_number(pattern: &str, number: &str) -> String {
    let name_start = pattern.rfind('/').map_or(0, |slash| slash + 1);
    let name = &pattern[name_start..];
    let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
    let (head, tail) = pattern.split_at(name_start + dot);
    format!("{head}-{number}{tail}")
}

/// The peak of the resident memory before the process wrote its last dump, in bytes; 0 before that.
static RESIDENT_PEAK: AtomicU64 = AtomicU64::new(0);

/// Stores the current peak of the resident memory. Call this before a dump: reporters, symbols and the dump itself may
/// raise the peak.
#[cfg(target_os = "linux")]
pub(crate) fn note_resident_peak() {
    // The buffer is on the stack, because the heap belongs to the program.
    let mut status = [0; 4096];
    let read = raw_file::read_start(c"/proc/self/status", &mut status);
    let status = str::from_utf8(&status[..read]).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    RESIDENT_PEAK.store(kib.unwrap_or_default() << 10, Ordering::Relaxed);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn note_resident_peak() {}

/// The peak that [`note_resident_peak`] stored; `None` if the system does not give the peak.
pub(crate) fn resident_peak() -> Option<u64> {
    Some(RESIDENT_PEAK.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
}
