//! Handles SIGTERM and SIGINT in a process that `libdmd.so` records. If the program has no handler, the handler here
//! writes the last dump, and then lets the signal end the process.
//!
//! `libdmd.so` hides this handler from the program ([`HiddenHandler`]): the program sees the default action, and any
//! action that the program installs replaces the handler. If the program ignores the signal at the start, the signal
//! stays ignored.
//!
//! A signal may interrupt an allocation. The dump would wait for the locks of that allocation. So the handler returns,
//! and a timer of the process sends the signal again a tenth of a millisecond later. No thread waits for signals:
//! programs without threads stay without threads. If a program replaces itself by another program within that time
//! (`execve`), it loses the signal: the timer ends with the old program.
//!
//! A process that ends by itself writes its dump after all code of the program has run. During this dump, these signals
//! end the process at once ([`while_the_process_ends`]), unless the program ignores them. If the program handles or
//! blocks one of them, a signal at the start of the dump has no effect: it may be the reason why the process ends.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use crate::boundary::dumping;
use crate::dump::file;
use crate::engine::ENGINE;
use crate::options::Run;
use crate::system::errno::keeping_errno;
use crate::system::signals::ENDING;
use crate::system::slot::slot;
use crate::system::{confined, fork, log, own_stack, signals};
use crate::tables::stack;

/// The time of the first signal, in nanoseconds of the monotonic clock; 0 before the first signal.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// Whether the dump is being written.
static WRITING: AtomicBool = AtomicBool::new(false);
/// The kernel's number of the timer; -1 before it is made.
static TIMER: AtomicI32 = AtomicI32::new(-1);
/// The time at which the timer sends the signal, as in [`BEGUN`]; 0 if the timer is not set.
static DUE: AtomicU64 = AtomicU64::new(0);
/// The process that owns these statics. A child of `vfork` shares them with its parent, and a child of `fork` has a
/// copy; neither child has the timer.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The time at which the process started to end by itself, as in [`BEGUN`]. 0 if the process has not started to end,
/// or when everything is written.
static ENDING_SINCE: AtomicU64 = AtomicU64::new(0);
/// The process to which [`ENDING_SINCE`] applies.
static ENDING_PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether the program handles or blocks one of these signals, so that a signal may be the reason why the process ends.
static WAS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Signals within this time count as one request to end the process: `timeout` sends one signal to the process and one
/// to its group.
const ONE_REQUEST: Duration = Duration::from_millis(250);
const RETRY: Duration = Duration::from_micros(100);
const LONGEST_RETRIES: Duration = Duration::from_secs(1);
/// The time limit of the dump: the signal may have interrupted code that holds a lock for which a reporter waits.
const LONGEST_DUMP: Duration = Duration::from_secs(60);

/// Whether this handler is needed: the options ask for a recording or for a dump at the end of the process, or a
/// session of tracking may ask for one.
fn is_wanted() -> bool {
    let options = ENGINE.setup().options;
    let may_leave = ENGINE.records() && (options.dump_at_exit || options.record.is_some());
    // Process 1 of a namespace needs no handler: the default action of these signals does not end it.
    (may_leave || options.wait_for_track) && options.run == Run::Normal && std::process::id() != 1
}

/// Installs the handler for each signal that has the default action. The process must have only one thread.
pub(crate) fn start() {
    if !is_wanted() {
        return;
    }
    OWNER.store(std::process::id(), Ordering::Relaxed);
    for signal in ENDING {
        let mut found = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `found` is a place for the action, and a null pointer for the new one changes nothing.
        let failed = unsafe { libc::sigaction(signal, null(), found.as_mut_ptr()) } != 0;
        // SAFETY: all zeros are valid, and `sigaction` leaves them or fills the action.
        if !failed && unsafe { found.assume_init() }.sa_sigaction == libc::SIG_DFL {
            let action = action();
            // SAFETY: the action is complete, and its handler is for this signal.
            unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
        }
    }
}

fn action() -> libc::sigaction {
    // SAFETY: all zeros are a valid action.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = handle as extern "C" fn(c_int) as usize;
    // A second signal interrupts the handler. The handler does not run on a signal stack: while the dump is written on
    // another stack, the kernel would take the signal stack for unused, and the second signal would overwrite the
    // frames of the first signal.
    action.sa_flags = libc::SA_RESTART | libc::SA_NODEFER;
    action
}

/// Hides the handler from a program that reads or sets the action of a signal.
#[derive(Debug)]
pub struct HiddenHandler;

impl HiddenHandler {
    /// Whether the handler here may replace the default action of this signal.
    pub fn concerns(signal: c_int) -> bool {
        ENDING.contains(&signal) && is_wanted() && BEGUN.load(Ordering::Relaxed) == 0
    }

    /// The action that the program gets if the system returned the action `found`: the default action instead of the
    /// handler here.
    pub fn seen(found: libc::sigaction) -> libc::sigaction {
        if found.sa_sigaction == action().sa_sigaction {
            // SAFETY: all zeros are a valid action: the default one.
            return unsafe { MaybeUninit::zeroed().assume_init() };
        }
        found
    }

    /// The action to install if the program asks for the default action.
    pub fn instead_of_default() -> libc::sigaction {
        action()
    }
}

/// Writes the dump and the recording of a process that ends by itself. A signal that asks the process to end does not
/// wait for them.
pub(crate) fn while_the_process_ends(write: impl FnOnce()) {
    if !dumping::leaves_something() || confined::is_confined() || WRITING.load(Ordering::Relaxed) {
        return write();
    }
    ENDING_PROCESS.store(std::process::id(), Ordering::Relaxed);
    let before = ENDING.map(|signal| {
        let mut found = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `found` is a place for the action, and a null pointer for the new one changes nothing.
        let failed = unsafe { libc::sigaction(signal, null(), found.as_mut_ptr()) } != 0;
        // SAFETY: all zeros are valid, and `sigaction` leaves them or fills the action.
        let found = unsafe { found.assume_init() };
        if failed || found.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        if found.sa_sigaction != libc::SIG_DFL || signals::is_blocked(signal) {
            WAS_TAKEN.store(true, Ordering::Relaxed);
        }
        Some(found)
    });
    ENDING_SINCE.store(now(), Ordering::Relaxed);
    let action = action();
    for (signal, _) in ENDING.iter().zip(&before).filter(|(_, before)| before.is_some()) {
        // SAFETY: the action is complete, and its handler is for this signal.
        unsafe { libc::sigaction(*signal, &raw const action, null_mut()) };
    }
    signals::leave_ending_open();
    write();
    for (signal, before) in ENDING.iter().zip(&before) {
        if let Some(before) = before {
            // SAFETY: `before` is the action that the system returned for this signal.
            unsafe { libc::sigaction(*signal, before, null_mut()) };
        }
    }
    // Reset this after the actions are restored: otherwise, a signal in between would start another dump.
    ENDING_SINCE.store(0, Ordering::Relaxed);
}

/// Ends the process without finishing the dump that it was writing.
fn end_without_dump(signal: c_int) -> ! {
    file::remove_unfinished();
    signals::end_by(signal)
}

extern "C" fn handle(signal: c_int) {
    keeping_errno(|| {
        let ending_since = ENDING_SINCE.load(Ordering::Relaxed);
        if ending_since != 0 && ENDING_PROCESS.load(Ordering::Relaxed) == std::process::id() {
            if WAS_TAKEN.load(Ordering::Relaxed) && since(ending_since, now()) < ONE_REQUEST {
                return;
            }
            end_without_dump(signal);
        }
        if confined::is_confined() || !is_owner() || !dumping::leaves_something() {
            signals::end_by(signal);
        }
        let now = now();
        let due = DUE.load(Ordering::Relaxed);
        if due != 0 && due <= now {
            DUE.store(0, Ordering::Relaxed);
            if WRITING.load(Ordering::Relaxed) {
                log::say_anyway(format_args!("no dump: it takes longer than {} s", LONGEST_DUMP.as_secs()));
                end_without_dump(signal);
            }
        } else {
            match BEGUN.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {}
                Err(first) if since(first, now) < ONE_REQUEST => return,
                Err(_) => end_without_dump(signal),
            }
        }
        if slot().guard.is_set() || stack::is_interrupted_here() {
            if since(BEGUN.load(Ordering::Relaxed), now) < LONGEST_RETRIES && send_later(signal, RETRY) {
                return;
            }
            log::say_anyway(format_args!("no dump: the process ends in the middle of an allocation"));
        } else if !WRITING.swap(true, Ordering::Relaxed) {
            send_later(signal, LONGEST_DUMP);
            signals::leave_ending_open();
            own_stack::run(dumping::process_ends);
        }
        signals::end_by(signal);
    });
}

/// Whether this process may write the dump. A child of `fork` becomes the owner of its copies of the statics here. A
/// child of `vfork` runs in its parent's memory, and must not change it.
fn is_owner() -> bool {
    let this = std::process::id();
    if OWNER.load(Ordering::Relaxed) == this {
        return true;
    }
    if !fork::is_child_of_fork(this) {
        return false;
    }
    OWNER.store(this, Ordering::Relaxed);
    BEGUN.store(0, Ordering::Relaxed);
    DUE.store(0, Ordering::Relaxed);
    WRITING.store(false, Ordering::Relaxed);
    TIMER.store(-1, Ordering::Relaxed);
    true
}

fn since(first: u64, now: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(first))
}

fn now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64).max(1)
}

/// Lets the kernel send the signal to the process after some time. The function makes the system calls by number,
/// because the C library's functions for timers allocate.
fn send_later(signal: c_int, after: Duration) -> bool {
    if TIMER.load(Ordering::Relaxed) < 0 {
        // SAFETY: all zeros are a valid event.
        let mut event = unsafe { MaybeUninit::<libc::sigevent>::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = signal;
        let mut timer: c_int = -1;
        // SAFETY: `event` is valid, and `timer` is a place for the timer's number.
        unsafe {
            libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw const event, &raw mut timer)
        };
        TIMER.store(timer, Ordering::Relaxed);
    }
    DUE.store(now().saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)), Ordering::Relaxed);
    let nanoseconds = libc::timespec { tv_sec: after.as_secs() as _, tv_nsec: after.subsec_nanos().into() };
    let once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let time = libc::itimerspec { it_interval: once, it_value: nanoseconds };
    // SAFETY: `time` is valid, and the kernel refuses a number that is not a timer's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_timer_settime,
            TIMER.load(Ordering::Relaxed),
            0,
            &raw const time,
            null_mut::<libc::itimerspec>(),
        )
    };
    result == 0
}
