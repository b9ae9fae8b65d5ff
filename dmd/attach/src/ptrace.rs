//! The system calls that trace a thread.

use core::ffi::{c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use std::io;

use crate::arch::{ThreadRegisters, VECTORS};

const GENERAL: c_int = 1;
const SYSTEM_CALL: c_int = 0x404;
const EVENT_STOP: c_int = 128;
/// `PTRACE_GET_RSEQ_CONFIGURATION`.
const RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
/// The room for the vector registers, in bytes.
const MOST_VECTORS: usize = 32 << 10;

/// A change of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceEvent {
    /// The thread is stopped, as requested.
    Stopped,
    /// A signal has stopped the whole process.
    GroupStopped,
    /// The thread is about to get this signal.
    Signal(c_int),
    /// The thread has ended.
    Ended,
}

/// A thread that this process traces. It is stopped except during [`go_on`](Self::go_on).
#[derive(Debug)]
pub(crate) struct TracedThread {
    number: u32,
    is_stopped: bool,
    /// The signal that the thread gets when it is let go; 0 for no signal.
    kept_signal: c_int,
}

impl TracedThread {
    /// Stops a thread. If the thread is about to get a signal, or stops together with the whole process, lets it go and
    /// returns `None`.
    pub(crate) fn stop(number: u32) -> io::Result<Option<Self>> {
        Self::tell_to_stop(number)?.wait_for_stop()
    }

    /// Tells a thread to stop. [`wait_for_stop`](Self::wait_for_stop) follows.
    pub(crate) fn tell_to_stop(number: u32) -> io::Result<Self> {
        request(libc::PTRACE_SEIZE, number, 0, 0)?;
        let thread = Self { number, is_stopped: false, kept_signal: 0 };
        request(libc::PTRACE_INTERRUPT, number, 0, 0)?;
        Ok(thread)
    }

    /// Waits until the thread has stopped. The result is that of [`stop`](Self::stop).
    pub(crate) fn wait_for_stop(mut self) -> io::Result<Option<Self>> {
        match self.wait()? {
            TraceEvent::Stopped => Ok(Some(self)),
            TraceEvent::GroupStopped => Ok(None),
            TraceEvent::Signal(signal) => {
                self.let_go(signal);
                Ok(None)
            }
            TraceEvent::Ended => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    fn wait(&mut self) -> io::Result<TraceEvent> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is a place for the result.
            let found = unsafe { libc::waitpid(self.number as libc::pid_t, &raw mut status, libc::__WALL) };
            if found >= 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if !libc::WIFSTOPPED(status) {
            return Ok(TraceEvent::Ended);
        }
        self.is_stopped = true;
        let signal = libc::WSTOPSIG(status);
        Ok(match status >> 16 {
            EVENT_STOP if signal == libc::SIGTRAP => TraceEvent::Stopped,
            EVENT_STOP => TraceEvent::GroupStopped,
            _ => TraceEvent::Signal(signal),
        })
    }

    /// Lets the thread run until its next change.
    pub(crate) fn go_on(&mut self) -> io::Result<TraceEvent> {
        request(libc::PTRACE_CONT, self.number, 0, 0)?;
        self.is_stopped = false;
        self.wait()
    }

    fn let_go(&mut self, signal: c_int) {
        if self.is_stopped {
            // An error means that the thread has ended.
            let _ = request(libc::PTRACE_DETACH, self.number, 0, signal as usize);
            self.is_stopped = false;
        }
    }

    pub(crate) fn registers(&self) -> io::Result<ThreadRegisters> {
        let mut registers = MaybeUninit::<ThreadRegisters>::zeroed();
        let bytes = size_of::<ThreadRegisters>();
        // SAFETY: the set has this type, and `registers` has room for it.
        unsafe { self.get(GENERAL, registers.as_mut_ptr().cast(), bytes) }?;
        // SAFETY: zeroes are valid, and the kernel has filled the structure.
        Ok(unsafe { registers.assume_init() })
    }

    pub(crate) fn set_registers(&self, registers: &ThreadRegisters) -> io::Result<()> {
        self.set(GENERAL, core::ptr::from_ref(registers).cast(), size_of::<ThreadRegisters>())
    }

    /// Keeps the kernel from restarting the interrupted system call while the thread has other registers. Does nothing
    /// on x86-64: there, the number of the system call is one of the general registers.
    pub(crate) fn forget_system_call(&self) -> io::Result<()> {
        if cfg!(target_arch = "x86_64") {
            return Ok(());
        }
        let none: c_int = -1;
        self.set(SYSTEM_CALL, (&raw const none).cast(), size_of::<c_int>())
    }

    /// The system call in which the thread is.
    pub(crate) fn system_call(&self, registers: &ThreadRegisters) -> Option<i64> {
        #[cfg(target_arch = "x86_64")]
        let call = registers.orig_rax as i64;
        #[cfg(not(target_arch = "x86_64"))]
        let call = {
            let _ = registers;
            let mut call: c_int = -1;
            // SAFETY: the set is a number of this size.
            unsafe { self.get(SYSTEM_CALL, (&raw mut call).cast(), size_of::<c_int>()) }.ok()?;
            i64::from(call)
        };
        Some(call).filter(|call| *call >= 0)
    }

    /// Whether the thread uses registers that [`vectors`](Self::vectors) does not contain.
    pub(crate) fn has_other_registers(&self) -> bool {
        #[cfg(target_arch = "aarch64")]
        {
            // The sets SVE, streaming SVE and ZA. Each starts with its size, the largest size, the lengths of a
            // vector and flags. The lowest flag is set if the registers have contents.
            let has_contents = |set: c_int| {
                let mut header = [0_u16; 8];
                // SAFETY: the kernel writes at most the bytes of the header.
                let filled = unsafe { self.get(set, header.as_mut_ptr().cast(), size_of_val(&header)) };
                let size = u32::from(header[0]) | u32::from(header[1]) << 16;
                filled.is_ok()
                    && if set == 0x40c { size as usize > size_of_val(&header) } else { header[6] & 1 != 0 }
            };
            [0x405, 0x40b, 0x40c].into_iter().any(has_contents)
        }
        #[cfg(not(target_arch = "aarch64"))]
        false
    }

    /// Keeps a signal that has arrived at a bad moment. The thread gets it when it is let go.
    pub(crate) fn keep_signal(&mut self, signal: c_int) {
        self.kept_signal = signal;
    }

    /// Whether the code of the thread caused the signal at which the thread stopped, for example by a fault.
    pub(crate) fn is_own_fault(&self) -> bool {
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        let place = information.as_mut_ptr().expose_provenance();
        if request(libc::PTRACE_GETSIGINFO, self.number, 0, place).is_err() {
            return true;
        }
        // SAFETY: zeroes are valid, and the kernel has filled the structure.
        unsafe { information.assume_init() }.si_code > 0
    }

    /// The vector registers.
    pub(crate) fn vectors(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; MOST_VECTORS];
        // SAFETY: the vector has this many bytes.
        let filled = unsafe { self.get(VECTORS, bytes.as_mut_ptr().cast(), MOST_VECTORS) }?;
        bytes.truncate(filled);
        Ok(bytes)
    }

    pub(crate) fn set_vectors(&self, bytes: &[u8]) -> io::Result<()> {
        self.set(VECTORS, bytes.as_ptr().cast(), bytes.len())
    }

    /// The blocked signals, a bit for each.
    pub(crate) fn mask(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        request(libc::PTRACE_GETSIGMASK, self.number, size_of::<u64>(), (&raw mut mask).expose_provenance())?;
        Ok(mask)
    }

    pub(crate) fn set_mask(&self, mask: u64) -> io::Result<()> {
        request(libc::PTRACE_SETSIGMASK, self.number, size_of::<u64>(), (&raw const mask).expose_provenance())
    }

    /// The address of the thread's structure of restartable sequences; `None` without one, or with an old kernel.
    pub(crate) fn restartable_sequence(&self) -> Option<u64> {
        let mut found = [0_u64; 3];
        let room = size_of_val(&found);
        request(RSEQ_CONFIGURATION, self.number, room, found.as_mut_ptr().expose_provenance()).ok()?;
        Some(found[0]).filter(|address| *address != 0)
    }

    /// # Safety
    ///
    /// `place` has room for this many bytes, and the set's type fits into them.
    unsafe fn get(&self, set: c_int, place: *mut c_void, bytes: usize) -> io::Result<usize> {
        let mut vector = libc::iovec { iov_base: place, iov_len: bytes };
        request(libc::PTRACE_GETREGSET, self.number, set as usize, (&raw mut vector).expose_provenance())?;
        Ok(vector.iov_len)
    }

    fn set(&self, set: c_int, place: *const c_void, bytes: usize) -> io::Result<()> {
        let vector = libc::iovec { iov_base: place.cast_mut(), iov_len: bytes };
        request(libc::PTRACE_SETREGSET, self.number, set as usize, (&raw const vector).expose_provenance())
    }
}

impl Drop for TracedThread {
    fn drop(&mut self) {
        self.let_go(self.kept_signal);
    }
}

fn request(request: libc::c_uint, thread: u32, address: usize, data: usize) -> io::Result<()> {
    let address = core::ptr::with_exposed_provenance_mut::<c_void>(address);
    let data = if data == 0 { null_mut() } else { core::ptr::with_exposed_provenance_mut::<c_void>(data) };
    // SAFETY: each caller passes addresses of its own variables, or numbers, as the request needs.
    let result: c_long = unsafe { libc::ptrace(request, thread, address, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives a thread the highest priority, until dropped. Only root may do that: for others the priority stays.
pub(crate) struct PriorityGuard {
    thread: u32,
    before: PriorityBefore,
}

/// The scheduler's flag that threads start with the usual priority.
const RESET_ON_FORK: c_int = 0x4000_0000;

fn set_policy(thread: u32, policy: c_int, priority: c_int) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters are valid for a read.
    unsafe { libc::sched_setscheduler(thread as libc::pid_t, policy, &raw const parameters) == 0 }
}

/// What a thread had before.
enum PriorityBefore {
    /// This policy of the scheduler.
    Policy(c_int),
    /// This priority among threads with the usual policy; and whether the threads that the thread starts got another
    /// priority than their own at the start.
    Priority(c_int, bool),
    Unchanged,
}

impl PriorityGuard {
    /// Lets this thread run before all threads with the usual policy. Priorities among those count only within the
    /// sessions, or groups, of the processes.
    pub(crate) fn for_this_thread() -> Self {
        const LOWEST: c_int = 1;
        // SAFETY: the function has no precondition.
        let before = unsafe { libc::sched_getscheduler(0) };
        if before >= 0 && set_policy(0, libc::SCHED_FIFO, LOWEST) {
            Self { thread: 0, before: PriorityBefore::Policy(before) }
        } else {
            Self::for_thread(0)
        }
    }

    /// Lets a thread run before other threads of the usual policy. It keeps this policy: its code may wait in a loop for
    /// another thread, which has to run, too.
    pub(crate) fn for_thread(thread: u32) -> Self {
        const HIGHEST: c_int = -20;
        // SAFETY: the function has no precondition. A thread has its own priority.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) };
        // SAFETY: as above.
        let is_set = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, HIGHEST) } == 0;
        // Threads that the library starts during the calls do not inherit the priority.
        // SAFETY: the function has no precondition.
        let is_usual = unsafe { libc::sched_getscheduler(thread as libc::pid_t) } == libc::SCHED_OTHER;
        let resets = is_set && is_usual && set_policy(thread, libc::SCHED_OTHER | RESET_ON_FORK, 0);
        let before =
            if is_set { PriorityBefore::Priority(before, resets) } else { PriorityBefore::Unchanged };
        Self { thread, before }
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        match self.before {
            PriorityBefore::Policy(policy) => {
                set_policy(self.thread, policy, 0);
            }
            PriorityBefore::Priority(before, resets) => {
                if resets {
                    set_policy(self.thread, libc::SCHED_OTHER, 0);
                }
                // SAFETY: the function has no precondition.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, self.thread, before) };
            }
            PriorityBefore::Unchanged => {}
        }
    }
}

/// Locks a file until it is closed. Returns false if another process has locked it.
pub(crate) fn lock(file: &std::fs::File) -> bool {
    use std::os::fd::AsRawFd as _;

    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Adds seals to a file in memory: its contents cannot change any more.
pub(crate) fn seal(file: &std::fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: the descriptor is open, and the call changes only the file's seals.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The user that this process acts as.
pub(crate) fn own_user() -> u32 {
    // SAFETY: the function has no precondition.
    unsafe { libc::geteuid() }
}
