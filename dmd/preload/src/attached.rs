//! This library in a process that runs already. `about-memory attach` makes a thread of the process load the library
//! from the path `/proc/self/fd/N` and call [`DMDAttach`]. The program's references to functions of the C library then
//! lead to this library ([`redirect`](crate::redirect)). `about-memory detach` calls [`DMDDetach`]. The library stays
//! loaded: a thread may be in one of its functions.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write as _};
use core::sync::atomic::{AtomicU64, Ordering};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use engine::__private::{
    AttachOptions, AttachRefusal, OLDER_BLOCKS, after_a_moment, attach, detach, keeping_errno,
    on_engine_thread, own_allocations,
};

use crate::injected::{self, is_attached, is_injected, program_function};
use crate::loaded_objects::all;
use crate::redirect::{Direction, RedirectCounts, has_new_objects, moved, redirect, redirect_late_stubs};
use crate::redirections::RunningThreads;
use crate::{later_objects, real, static_allocators};

/// Room for the texts and the stack of the calls that a thread makes for `about-memory attach` and `detach`. In a
/// process that has already loaded this library, these calls need no other memory.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "in line with the C functions")]
static DMDRoom: CallRoom = CallRoom(UnsafeCell::new([0; 512 << 10]));

#[repr(align(4096))]
#[allow(dead_code, reason = "another process uses the bytes")]
struct CallRoom(UnsafeCell<[u8; 512 << 10]>);

// SAFETY: no code of this library uses the bytes. The processes that attach take turns.
unsafe impl Sync for CallRoom {}

/// Attaches: starts to record in this process, which runs already. `wishes` contains entries `KEY VALUE`, each with the
/// byte 0x1f at its end; the reply contains lines `KEY VALUE`. Returns 0, or 1 with a line `error` in the reply.
///
/// # Safety
///
/// `wishes` ends in 0, and `reply` has room for `room` bytes. The calling thread is not in the loader, in the
/// allocator or in this library.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) unsafe extern "C" fn DMDAttach(wishes: *const c_char, reply: *mut c_char, room: usize) -> c_int {
    // SAFETY: the caller passes room for this many bytes, and nothing else uses it.
    let mut reply = unsafe { Reply::new(reply, room) };
    // SAFETY: the caller passes a text that ends in 0.
    let wishes = unsafe { CStr::from_ptr(wishes) };
    match keeping_errno(|| begin(wishes, &mut reply)) {
        Ok(()) => 0,
        Err(error) => {
            reply.line(format_args!("error {error}"));
            1
        }
    }
}

/// Ends an attachment. The reply has lines `KEY VALUE`. Returns 0, or 1 if there is no attachment.
///
/// # Safety
///
/// The contract of [`DMDAttach`].
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) unsafe extern "C" fn DMDDetach(reply: *mut c_char, room: usize) -> c_int {
    // SAFETY: the caller passes room for this many bytes, and nothing else uses it.
    let mut reply = unsafe { Reply::new(reply, room) };
    if !injected::set_attached(false) {
        reply.line(format_args!("error no attachment"));
        return 1;
    }
    keeping_errno(|| {
        // The engine ends first: as long as it records, it must see the ends of all blocks.
        detach();
        static_allocators::detach(RunningThreads::now());
        let restored = redirect(Direction::Back);
        match restored {
            Ok(RedirectCounts { slots, .. }) => reply.line(format_args!("slots {slots}")),
            Err(error) => reply.line(format_args!("kept {error}")),
        }
        let [blocks, bytes] = OLDER_BLOCKS.freed();
        reply.line(format_args!("older-freed {blocks} {bytes}"));
    });
    0
}

fn begin(wishes: &CStr, reply: &mut Reply) -> Result<(), String> {
    if !is_injected() {
        return Err("preloaded".to_owned());
    }
    if is_attached() {
        return Err("attached".to_owned());
    }
    let bytes = wishes.to_bytes_with_nul();
    let mut options = AttachOptions::new(Path::new("/"));
    // The byte 0x1f after a value does not belong to the value.
    for line in bytes.split_inclusive(|byte| *byte == 0x1f) {
        let Some(at) = line.iter().position(|byte| *byte == b' ') else { continue };
        let (key, value) = (&line[..at], &line[at + 1..line.len() - 1]);
        match key {
            b"folder" => options.folder = Path::new(OsStr::from_bytes(value)),
            b"sample" => {
                let number = str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                options.sample_bytes = number.ok_or("bad sample")?;
            }
            b"wait" => options.waits = true,
            _ => {}
        }
    }
    let record = value_of(bytes, b"record");
    options.record = record.as_deref();
    if !real::known() {
        return Err("the C library's functions are not found".to_owned());
    }
    injected::find_environment();
    let older = heap_in_use();
    OLDER_BLOCKS.begin(older.unwrap_or(0));
    if let Some(bytes) = older {
        reply.line(format_args!("before {bytes}"));
    }
    attach(&options).inspect_err(|_| OLDER_BLOCKS.end()).map_err(|refusal| match refusal {
        AttachRefusal::Busy => "busy".to_owned(),
        AttachRefusal::NoThreads => "the loader gives no thread-locals for the engine's threads".to_owned(),
        AttachRefusal::Socket(error) => format!("no socket: {error}"),
        AttachRefusal::Recording(number) => {
            format!("no recording: {}", std::io::Error::from_raw_os_error(number))
        }
        _ => "the engine does not start".to_owned(),
    })?;
    later_objects::start(redirect_new_objects);
    match redirect(Direction::Here) {
        Ok(RedirectCounts { slots, objects }) => {
            injected::set_attached(true);
            reply.line(format_args!("slots {slots}"));
            reply.line(format_args!("objects {objects}"));
            after_a_moment(redirect_late_stubs);
            moved().for_each(|(old, new)| reply.line(format_args!("moved {old} {new}")));
            hook_allocators();
            reply.line(format_args!("report {}", (&raw const REPORT).addr()));
            Ok(())
        }
        Err(error) => {
            detach();
            OLDER_BLOCKS.end();
            Err(error)
        }
    }
}

/// Redirects the references of objects that the program has loaded since the last redirection.
fn redirect_new_objects() {
    if has_new_objects() {
        // After an error, the references of the new objects still lead to the C library.
        _ = redirect(Direction::Here);
        after_a_moment(redirect_late_stubs);
    }
}

fn value_of(bytes: &[u8], key: &[u8]) -> Option<std::ffi::CString> {
    let line = bytes.split(|byte| *byte == 0x1f).find(|line| line.starts_with(key))?;
    std::ffi::CString::new(line.get(key.len() + 1..)?).ok()
}

/// The report about the allocators that the program links. The process that attaches waits for it and reads it from
/// this process's memory: the search would take too long for the stopped thread that calls [`DMDAttach`].
#[repr(C)]
struct AllocatorReport {
    /// Whether the report is complete.
    is_ready: AtomicU64,
    /// The address of the text, and its number of bytes. The text ends in a line `end`.
    address: AtomicU64,
    bytes: AtomicU64,
}

static REPORT: AllocatorReport =
    AllocatorReport { is_ready: AtomicU64::new(0), address: AtomicU64::new(0), bytes: AtomicU64::new(0) };

/// The text of [`REPORT`].
static REPORT_TEXT: Mutex<String> = Mutex::new(String::new());

impl AllocatorReport {
    fn set(&self, text: &str) {
        let mut kept = REPORT_TEXT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear();
        kept.push_str(text);
        kept.push_str("end\n");
        self.address.store(kept.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
        self.bytes.store(kept.len() as u64, Ordering::Relaxed);
        self.is_ready.store(1, Ordering::Release);
    }
}

/// Hooks the allocators inside of the program and its libraries: at once if the program has one thread, otherwise on a
/// thread of the engine.
fn hook_allocators() {
    REPORT.is_ready.store(0, Ordering::SeqCst);
    own_allocations(|| {
        let objects = all();
        if RunningThreads::now() == RunningThreads::None {
            return REPORT.set(&static_allocators::attach_to(objects, RunningThreads::None));
        }
        let has_started = on_engine_thread(move || {
            REPORT.set(&static_allocators::attach_to(objects, RunningThreads::Stopped));
        });
        if !has_started {
            REPORT.set("unhooked the program's own allocator, if any: no thread can be started\n");
        }
    });
}

/// The bytes that glibc's allocator counts as in use; `None` if the program's `malloc` is not in a library with
/// `mallinfo2`.
fn heap_in_use() -> Option<u64> {
    let function = program_function(c"mallinfo2");
    if function.is_null() || injected::file_of(function) != injected::file_of(real::malloc_address()) {
        return None;
    }
    // SAFETY: glibc fixes the type of the function of this name.
    let mallinfo2: extern "C" fn() -> libc::mallinfo2 = unsafe { core::mem::transmute(function) };
    let info = mallinfo2();
    Some((info.uordblks + info.hblkhd) as u64)
}

/// Text for the process that attaches: lines that end in a line feed, and a 0 at the end.
struct Reply {
    place: *mut u8,
    room: usize,
}

impl Reply {
    /// # Safety
    ///
    /// `place` has room for `room` bytes, and no other code uses it.
    unsafe fn new(place: *mut c_char, room: usize) -> Self {
        let reply = Self { place: place.cast(), room };
        if room > 0 {
            // SAFETY: there is room for at least one byte.
            unsafe { reply.place.write(0) };
        }
        reply
    }

    /// Adds a line. A line that does not fit is left out: a part of it could contain a part of an address.
    fn line(&mut self, line: fmt::Arguments<'_>) {
        let (place, room) = (self.place, self.room);
        if self.write_fmt(line).and_then(|()| self.write_char('\n')).is_err() {
            (self.place, self.room) = (place, room);
            if room > 0 {
                // SAFETY: there is room for at least one byte.
                unsafe { place.write(0) };
            }
        }
    }
}

impl fmt::Write for Reply {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let count = text.len();
        if count >= self.room {
            return Err(fmt::Error);
        }
        // SAFETY: the place has room for these bytes and a 0, and the text is elsewhere.
        unsafe { self.place.copy_from_nonoverlapping(text.as_ptr(), count) };
        self.place = self.place.wrapping_add(count);
        self.room -= count;
        // SAFETY: the room for the 0 was left above.
        unsafe { self.place.write(0) };
        Ok(())
    }
}
