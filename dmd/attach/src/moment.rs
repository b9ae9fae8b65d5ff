//! Chooses a thread, and a moment, for calls into the process: the thread must hold no lock that the calls take.
//!
//! Threads are stopped one at a time. A stopped thread is at a safe moment if no frame is in the loader, in an
//! allocator, in a function that starts threads or processes, or in a signal handler. If its stack cannot be walked to
//! its end (compiled code of an interpreter, for example), each word of the rest of the stack that looks like a return
//! address counts as a frame.

use core::time::Duration;
use std::io;
use std::time::Instant;

use crate::arch;
use crate::error::AttachError;
use crate::object::LoadedObject;
use crate::ptrace::TracedThread;
use crate::target::{TargetProcess, trace_advice};
use crate::unwind::{self, StoppedFrame};

/// The time after which no more moments are tried.
const LONGEST: Duration = Duration::from_secs(2);
/// The time between two rounds of tries.
const BETWEEN: Duration = Duration::from_millis(10);
/// The number of threads that a round tries.
const THREADS_A_ROUND: usize = 16;
/// The bytes of a stack that are searched for return addresses.
const SEARCHED: usize = 64 << 10;

/// Functions that hold locks which the calls take, or during which the process has a state that the calls must not see.
const UNSAFE: [&str; 42] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "malloc_info",
    "malloc_stats",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "__libc_memalign",
    "__libc_freeres",
    "pthread_create",
    "pthread_exit",
    "pthread_atfork",
    "__register_atfork",
    "fork",
    "vfork",
    "_Fork",
    "__fork",
    "__libc_fork",
    "posix_spawn",
    "posix_spawnp",
    "exit",
    "_exit",
    "quick_exit",
    "dlopen",
    "dlmopen",
    "dlclose",
    "dlsym",
    "dladdr",
    "dl_iterate_phdr",
    "pthread_key_create",
    "__cxa_finalize",
];

/// A stopped thread at a safe moment.
#[derive(Debug)]
pub(crate) struct SafeMoment {
    pub(crate) thread: TracedThread,
    /// The time at which the thread stopped.
    pub(crate) since: Instant,
}

/// Waits for a safe moment.
pub(crate) fn wait(target: &TargetProcess, objects: &[LoadedObject]) -> Result<SafeMoment, AttachError> {
    let until = Instant::now() + LONGEST;
    let mut reason = "it has no thread that can be stopped".to_owned();
    let mut first = 0;
    loop {
        let threads = target.threads().map_err(|_| AttachError::Ended)?;
        let count = threads.len();
        for number in 0..count.min(THREADS_A_ROUND) {
            let thread = threads[(first + number) % count];
            if thread.is_stuck {
                continue;
            }
            match try_thread(target, objects, thread.number) {
                Ok(Ok(moment)) => return Ok(moment),
                Ok(Err(other)) => reason = other,
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    return Err(AttachError::Forbidden(trace_advice(target.number)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        // The next round starts with other threads, if there are more than a round tries.
        first = if count > THREADS_A_ROUND { (first + THREADS_A_ROUND) % count } else { 0 };
        if Instant::now() > until {
            return Err(AttachError::NoMoment(reason));
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Stops a thread. Returns the reason if the moment is not safe: the thread goes on.
fn try_thread(
    target: &TargetProcess,
    objects: &[LoadedObject],
    number: u32,
) -> io::Result<Result<SafeMoment, String>> {
    let Some(thread) = TracedThread::stop(number)? else {
        return Ok(Err("a signal arrives".to_owned()));
    };
    let since = Instant::now();
    let mut registers = thread.registers()?;
    if !arch::is_64_bit(&registers) {
        return Ok(Err("a thread runs 32-bit code".to_owned()));
    }
    if let Some(again) = arch::making_the_call_again(&registers)
        && !target.has_pending_signal(number)
    {
        thread.set_registers(&again)?;
        registers = again;
    }
    if let Some(area) = thread.restartable_sequence()
        && target.word(area + 8).is_some_and(|sequence| sequence != 0)
    {
        return Ok(Err("a thread is in a restartable sequence".to_owned()));
    }
    let stack = unwind::walk(target, objects, &registers);
    let mut is_innermost = true;
    for frame in &stack.frames {
        if let Some(reason) = unsafe_frame(target, objects, frame, is_innermost) {
            return Ok(Err(reason));
        }
        is_innermost &= frame.object.is_some_and(|object| is_c_library(&objects[object]));
    }
    if let Some(stack_pointer) = stack.lost_at
        && let Some(reason) = search(target, objects, stack_pointer)
    {
        return Ok(Err(reason));
    }
    Ok(Ok(SafeMoment { thread, since }))
}

pub(crate) fn is_c_library(object: &LoadedObject) -> bool {
    object.name().starts_with("libc.so") || object.name().starts_with("libc-2.")
}

pub(crate) fn is_loader(object: &LoadedObject) -> bool {
    object.name().starts_with("ld-linux") || object.name().starts_with("ld-2.")
}

/// The reason why a frame is unsafe. `is_innermost` is true if all frames within this one are of the C library.
fn unsafe_frame(
    target: &TargetProcess,
    objects: &[LoadedObject],
    frame: &StoppedFrame,
    is_innermost: bool,
) -> Option<String> {
    if frame.is_signal {
        return Some("a thread is in a signal handler".to_owned());
    }
    let object = &objects[frame.object?];
    if is_loader(object) {
        return Some("a thread is in the loader".to_owned());
    }
    let functions = object.functions(target);
    let after = functions.partition_point(|function| function.start <= frame.code);
    // Several names may start at one address.
    let around = functions[..after].iter().rev().take(16).find(|function| frame.code < function.end);
    if let Some(function) = around {
        let same = functions.iter().filter(|other| other.start == function.start);
        let mut names = same.map(|other| other.name.as_str());
        return names.find(|name| UNSAFE.contains(name)).map(|name| format!("a thread is in {name}"));
    }
    // Functions of the allocator that have no name are called by functions that have one, so a walk finds these. A
    // jump from the one to the other would leave only the former: while it runs, the thread is not at a safe moment.
    let is_own_code = is_innermost && is_c_library(object) && !is_in_system_call(target, frame.code);
    is_own_code.then(|| "a thread is in the C library".to_owned())
}

/// Whether the instruction before is a system call.
fn is_in_system_call(target: &TargetProcess, code: u64) -> bool {
    let mut before = [0; 4];
    if !target.read(code.wrapping_sub(4), &mut before) {
        return false;
    }
    if cfg!(target_arch = "x86_64") { before.ends_with(&[0x0f, 5]) } else { before == [1, 0, 0, 0xd4] }
}

/// Searches the rest of a stack for return addresses into unsafe code.
fn search(target: &TargetProcess, objects: &[LoadedObject], stack_pointer: u64) -> Option<String> {
    let mut stack = vec![0; SEARCHED];
    let mut length = SEARCHED;
    while length > 0 && !target.read(stack_pointer, &mut stack[..length]) {
        length /= 2;
    }
    stack[..length].as_chunks::<8>().0.iter().find_map(|word| {
        let address = u64::from_le_bytes(*word);
        let object = objects.iter().position(|object| object.has_code_at(address))?;
        let mut before = [0; 8];
        if !target.read(address.wrapping_sub(8), &mut before) || !arch::is_after_call(&before) {
            return None;
        }
        let frame = StoppedFrame { code: address - 1, object: Some(object), is_signal: false };
        unsafe_frame(target, objects, &frame, false)
    })
}
