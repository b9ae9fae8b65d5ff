//! The system calls that trace a thread.

use core::ffi::{c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::time::Duration;
use std::cell::RefCell;
use std::io;
use std::time::Instant;

use crate::arch::{self, ThreadRegisters, VECTORS};

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

/// The longest wait for one thread to stop.
pub(crate) const LONGEST_STOP: Duration = Duration::from_millis(100);

thread_local! {
    /// The threads that were told to stop, and were not waited for. Only their tracer can let them go, as soon as they
    /// stop. So each wait looks after them: a call may wait for a lock that such a thread holds.
    static LATE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceState {
    /// The tracer has asked the thread to stop.
    Told,
    Stopped,
    /// The thread runs until its next change, or has ended.
    Running,
}

/// A thread that this process traces. It is stopped except during [`go_on`](Self::go_on).
///
/// When it is dropped, the thread continues. It makes its system call again if only the stop has ended that call.
#[derive(Debug)]
pub(crate) struct TracedThread {
    number: u32,
    state: TraceState,
    /// The signal that the thread gets when it is let go; 0 for no signal.
    kept_signal: c_int,
}

impl TracedThread {
    /// Stops a thread. If the thread is about to get a signal, or stops together with the whole process, lets it go and
    /// returns `None`.
    ///
    /// # Errors
    ///
    /// `TimedOut` means that the thread has not stopped in [`LONGEST_STOP`]. It continues as soon as it stops.
    pub(crate) fn stop(number: u32) -> io::Result<Option<Self>> {
        Self::tell_to_stop(number)?.wait_for_stop(Instant::now() + LONGEST_STOP)
    }

    /// Tells a thread to stop. [`wait_for_stop`](Self::wait_for_stop) follows.
    pub(crate) fn tell_to_stop(number: u32) -> io::Result<Self> {
        request(libc::PTRACE_SEIZE, number, 0, 0)?;
        let thread = Self { number, state: TraceState::Told, kept_signal: 0 };
        request(libc::PTRACE_INTERRUPT, number, 0, 0)?;
        Ok(thread)
    }

    /// Waits until the thread has stopped. The result is that of [`stop`](Self::stop).
    pub(crate) fn wait_for_stop(mut self, until: Instant) -> io::Result<Option<Self>> {
        match self.wait(Some(until))? {
            TraceEvent::Stopped => Ok(Some(self)),
            TraceEvent::GroupStopped => Ok(None),
            TraceEvent::Signal(signal) => {
                self.keep_signal(signal);
                Ok(None)
            }
            TraceEvent::Ended => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Waits for the next change, at most until this time.
    fn wait(&mut self, until: Option<Instant>) -> io::Result<TraceEvent> {
        const FIRST: Duration = Duration::from_micros(20);
        const MOST: Duration = Duration::from_millis(1);
        let mut between = FIRST;
        loop {
            let polls = until.is_some() || has_late_threads();
            if let Some(event) = self.next_event(polls)? {
                return Ok(event);
            }
            if until.is_some_and(|until| Instant::now() > until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            look_after_late_threads();
            // Not a busy loop: this thread may have a higher priority than the one that it waits for.
            std::thread::sleep(between);
            between = MOST.min(between * 2);
        }
    }

    /// The next change. If `polls`, returns `None` if there is no change yet.
    fn next_event(&mut self, polls: bool) -> io::Result<Option<TraceEvent>> {
        let mut status = 0;
        let flags = libc::__WALL | if polls { libc::WNOHANG } else { 0 };
        // SAFETY: `status` is a place for the result.
        match unsafe { libc::waitpid(self.number as libc::pid_t, &raw mut status, flags) } {
            0 => return Ok(None),
            1.. => {}
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    return Ok(None);
                }
                self.state = TraceState::Running;
                return Err(error);
            }
        }
        if !libc::WIFSTOPPED(status) {
            self.state = TraceState::Running;
            return Ok(Some(TraceEvent::Ended));
        }
        self.state = TraceState::Stopped;
        let signal = libc::WSTOPSIG(status);
        Ok(Some(match status >> 16 {
            EVENT_STOP if signal == libc::SIGTRAP => TraceEvent::Stopped,
            EVENT_STOP => TraceEvent::GroupStopped,
            _ => TraceEvent::Signal(signal),
        }))
    }

    /// Lets the thread run until its next change.
    pub(crate) fn go_on(&mut self) -> io::Result<TraceEvent> {
        request(libc::PTRACE_CONT, self.number, 0, 0)?;
        self.state = TraceState::Running;
        self.wait(None)
    }

    /// Makes the system call that the stop has ended with EINTR again, unless a signal ends it: one that the program
    /// handles. The kernel wakes a traced thread even for a signal that the program ignores.
    fn make_call_again(&self) {
        let Some(again) = self.registers().ok().and_then(|registers| arch::making_the_call_again(&registers))
        else {
            return;
        };
        if !has_handled_signal(self.number, self.kept_signal) {
            // An error means that the thread has ended.
            let _ = self.set_registers(&again);
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
        match self.state {
            TraceState::Told => LATE.with_borrow_mut(|late| late.push(self.number)),
            TraceState::Stopped => {
                self.make_call_again();
                // An error means that the thread has ended.
                let _ = request(libc::PTRACE_DETACH, self.number, 0, self.kept_signal as usize);
            }
            TraceState::Running => {}
        }
    }
}

fn has_late_threads() -> bool {
    LATE.with_borrow(|late| !late.is_empty())
}

/// Lets those late threads go that have stopped.
fn look_after_late_threads() {
    for number in LATE.take() {
        let mut thread = TracedThread { number, state: TraceState::Told, kept_signal: 0 };
        // The drop puts the thread back into the list, or lets it go.
        if let Ok(Some(TraceEvent::Signal(signal))) = thread.next_event(true) {
            thread.keep_signal(signal);
        }
    }
}

/// Waits, but not long, until no thread is late. Returns whether none is.
pub(crate) fn let_late_threads_go() -> bool {
    const BETWEEN: Duration = Duration::from_micros(200);
    let until = Instant::now() + LONGEST_STOP;
    loop {
        look_after_late_threads();
        if !has_late_threads() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Whether the program handles this signal (0: no signal), or a signal that waits for the thread.
fn has_handled_signal(thread: u32, signal: c_int) -> bool {
    let Ok(status) = std::fs::read(format!("/proc/{thread}/status")) else { return true };
    let status = String::from_utf8_lossy(&status);
    let bits = |name| {
        let digits = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(digits.trim(), 16).ok()
    };
    let pending = bits("SigPnd:").unwrap_or(0) | bits("ShdPnd:").unwrap_or(0);
    let own = if signal > 0 { 1 << (signal - 1) } else { 0 };
    (pending & !bits("SigBlk:").unwrap_or(0) | own) & bits("SigCgt:").unwrap_or(u64::MAX) != 0
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

/// Whether this process may clear [`RESET_ON_FORK`], tried with this thread. A process that may lower the priority value
/// of a thread may set the flag, but not always clear it. The flag does not disturb this thread, which starts none.
fn may_clear_flag() -> bool {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is a place for the result.
    if unsafe { libc::sched_getparam(0, &raw mut parameters) } != 0 {
        return false;
    }
    // SAFETY: the function has no precondition.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy >= 0
        && set_policy(0, policy | RESET_ON_FORK, parameters.sched_priority)
        && set_policy(0, policy & !RESET_ON_FORK, parameters.sched_priority)
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
    /// another thread, which has to run, too. Without the right to restore all of it, nothing is changed.
    pub(crate) fn for_thread(thread: u32) -> Self {
        const HIGHEST: c_int = -20;
        if thread != 0 && !may_clear_flag() {
            return Self { thread, before: PriorityBefore::Unchanged };
        }
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
