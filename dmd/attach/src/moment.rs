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
use crate::ptrace::{self, TracedThread};
use crate::target::{TargetProcess, trace_advice};
use crate::unwind::{self, StoppedFrame};

/// The time after which [`wait`] returns an error.
const LONGEST: Duration = Duration::from_secs(2);
/// The time between two rounds of tries.
const BETWEEN: Duration = Duration::from_millis(10);
/// The number of threads that a round tries.
const THREADS_A_ROUND: usize = 16;
/// The bytes of a stack that are searched for return addresses.
const SEARCHED: usize = 64 << 10;

/// Functions that hold locks which the calls take, or during which the process has a state that the calls must not see.
const UNSAFE: [&str; 47] = [
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
    "__cxa_atexit",
    "__cxa_at_quick_exit",
    "atexit",
    "at_quick_exit",
    "on_exit",
];

/// System calls in which a thread waits, and holds no lock of an allocator.
const WAITING: [i64; 14] = [
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_read,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_io_uring_enter,
];

/// System calls in which a thread waits for a child.
const WAITING_FOR_A_CHILD: [i64; 2] = [libc::SYS_wait4, libc::SYS_waitid];

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
    let mut reason = "the process has no thread that can be stopped".to_owned();
    let mut first = 0;
    loop {
        let threads = target.threads().map_err(|_| AttachError::Ended)?;
        let count = threads.len();
        let (mut tried, mut forbidden) = (0, 0);
        for number in 0..count.min(THREADS_A_ROUND) {
            let thread = threads[(first + number) % count];
            if thread.is_stuck {
                continue;
            }
            if !arch::MAKES_CALLS_AGAIN && thread.system_call.is_some_and(arch::is_not_restarted) {
                reason = "a thread is in a system call that would fail after a stop".to_owned();
                continue;
            }
            tried += 1;
            match try_thread(target, objects, thread.number) {
                Ok(Ok(moment)) => return Ok(moment),
                Ok(Err(other)) => reason = other,
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // The system forbids it, or the thread is about to end.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => forbidden += 1,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    reason = "a thread does not stop".to_owned();
                }
                Err(error) => return Err(error.into()),
            }
        }
        if forbidden > 0 && forbidden == tried {
            return Err(AttachError::Forbidden(trace_advice(target.number)));
        }
        ptrace::let_late_threads_go();
        // The next round starts with other threads, if there are more than a round tries.
        first = if count > THREADS_A_ROUND { (first + THREADS_A_ROUND) % count } else { 0 };
        if Instant::now() > until {
            return Err(AttachError::NoMoment(reason));
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Stops a thread. If the moment is not safe, lets the thread go on, and returns the reason.
fn try_thread(
    target: &TargetProcess,
    objects: &[LoadedObject],
    number: u32,
) -> io::Result<Result<SafeMoment, String>> {
    let Some(thread) = TracedThread::stop(number)? else {
        return Ok(Err("a thread is about to get a signal".to_owned()));
    };
    let since = Instant::now();
    let registers = thread.registers()?;
    if !arch::is_64_bit(&registers) {
        return Ok(Err("a thread runs 32-bit code".to_owned()));
    }
    let system_call = thread.system_call(&registers);
    if system_call.is_none() && thread.has_other_registers() {
        return Ok(Err("a thread uses vector registers that cannot be saved".to_owned()));
    }
    if let Some(area) = thread.restartable_sequence()
        && target.word(area + 8).is_some_and(|sequence| sequence != 0)
    {
        return Ok(Err("a thread is in a restartable sequence".to_owned()));
    }
    let stack = unwind::walk(target, objects, &registers);
    let waits_for_child = system_call.is_some_and(|call| WAITING_FOR_A_CHILD.contains(&call));
    let is_waiting = waits_for_child
        || system_call.is_some_and(|call| WAITING.contains(&call) || arch::OLD_WAITING.contains(&call));
    // If the program contains an allocator, a running thread may be in it. A thread that waits in one of these system
    // calls is not.
    let has_own_allocator =
        objects.first().is_some_and(|program| program.function(target, "malloc").is_some());
    if has_own_allocator && !is_waiting {
        return Ok(Err("a thread may be in the program's own malloc".to_owned()));
    }
    let mut is_innermost = true;
    for (number, frame) in stack.frames.iter().enumerate() {
        // The functions of libdmd.so that wait for a child hold no lock.
        if waits_for_child && is_called_by_program(target, objects, &stack.frames[number..]) {
            continue;
        }
        if let Some(reason) = unsafe_frame(target, objects, frame, is_innermost && !is_waiting) {
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

/// Whether the first of these frames is in `libdmd.so`, and code outside of the C library has called into `libdmd.so`.
/// On a thread that `libdmd.so` has started, the caller is the C library.
fn is_called_by_program(target: &TargetProcess, objects: &[LoadedObject], frames: &[StoppedFrame]) -> bool {
    let is_recorder =
        |frame: &&StoppedFrame| frame.object.is_some_and(|object| objects[object].is_recorder(target));
    let inside = frames.iter().take_while(is_recorder).count();
    let caller = frames.get(inside).and_then(|frame| frame.object);
    inside > 0 && caller.is_some_and(|object| !is_c_library(&objects[object]))
}

pub(crate) fn is_c_library(object: &LoadedObject) -> bool {
    object.name().starts_with("libc.so.6") || object.name().starts_with("libc-2.")
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
    if object.is_recorder(target) {
        return Some("a thread is in libdmd.so".to_owned());
    }
    let functions = object.functions(target);
    // If a shared library exports `malloc`, even its code without a name may belong to the allocator. So all code of
    // such a library is unsafe.
    let is_allocator = !is_c_library(object)
        && frame.object != Some(0)
        && functions.iter().any(|function| function.name == "malloc");
    if is_allocator {
        return Some(format!("a thread is in {}", object.name()));
    }
    let after = functions.partition_point(|function| function.start <= frame.code);
    // Several names may start at one address.
    let around = functions[..after].iter().rev().take(16).find(|function| frame.code < function.end);
    if let Some(function) = around {
        let same = functions.iter().filter(|other| other.start == function.start);
        let mut names = same.map(|other| other.name.as_str());
        return names.find(|name| UNSAFE.contains(name)).map(|name| format!("a thread is in {name}"));
    }
    // The C library's allocator also has functions without a name. Functions with a name call them, so a walk finds the
    // name, unless the call is a jump (a tail call). So a thread whose innermost code has no name is not at a safe
    // moment.
    let is_own_code = is_innermost && is_c_library(object) && !is_in_system_call(target, frame.code);
    is_own_code.then(|| "a thread is in the C library".to_owned())
}

/// Whether the instruction before `code` is a system call, in which the thread is, or the instruction at `code` is a
/// system call, which the thread will make again.
fn is_in_system_call(target: &TargetProcess, code: u64) -> bool {
    let call: &[u8] = if cfg!(target_arch = "x86_64") { &[0x0f, 5] } else { &[1, 0, 0, 0xd4] };
    let mut around = [0; 8];
    if !target.read(code.wrapping_sub(4), &mut around) {
        return false;
    }
    around[..4].ends_with(call) || around[4..].starts_with(call)
}

/// Searches the rest of a stack for return addresses into unsafe code.
fn search(target: &TargetProcess, objects: &[LoadedObject], stack_pointer: u64) -> Option<String> {
    let mut stack = vec![0; SEARCHED];
    let mut length = SEARCHED;
    while length > 0 && !target.read(stack_pointer, &mut stack[..length]) {
        length /= 2;
    }
    if length == 0 {
        return Some("the stack of a thread cannot be read".to_owned());
    }
    stack[..length].as_chunks::<8>().0.iter().find_map(|word| {
        let address = arch::code_address(u64::from_le_bytes(*word));
        let object = objects.iter().position(|object| object.has_code_at(address))?;
        let mut before = [0; 8];
        if !target.read(address.wrapping_sub(8), &mut before) || !arch::is_after_call(&before) {
            return None;
        }
        let frame = StoppedFrame { code: address - 1, object: Some(object), is_signal: false };
        unsafe_frame(target, objects, &frame, false)
    })
}
