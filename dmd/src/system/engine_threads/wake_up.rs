//! Wakes engine threads that wait for descriptors. Such an engine thread also waits for a pipe, which becomes readable
//! while a call needs a process without engine threads.
//!
//! A program may close every descriptor and open its own under the same numbers. So the pipe has high numbers, and
//! each use checks that it is still the same pipe.

use core::ffi::{c_int, c_short};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use core::time::Duration;

use crate::system::clock;
use crate::system::errno::keeping_errno;

use super::{PAUSES, end_if_alone, pause_point};

/// The two ends of the pipe; -1 if there is no pipe.
static ENDS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
/// The inode number of the pipe. It shows whether a descriptor still refers to the pipe.
static INODE: AtomicU64 = AtomicU64::new(0);

/// The lowest number for the pipe: programs expect low numbers to be free, and close them without a check.
const HIGH: c_int = 900;
/// The maximum time for which an engine thread waits without a check: a program that closes all descriptors also closes
/// the pipe.
const LONGEST: Duration = Duration::from_secs(1);

/// Makes the pipe, unless an earlier attachment has made it. Called at the start of the process, or by an attachment.
pub(crate) fn prepare() {
    if end(0).is_some() && end(1).is_some() {
        return;
    }
    let mut ends: [c_int; 2] = [-1; 2];
    // SAFETY: `ends` is a place for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return;
    }
    let ends = ends.map(|end| {
        // SAFETY: the descriptor is open, and this function owns it.
        let high = unsafe { libc::fcntl(end, libc::F_DUPFD_CLOEXEC, HIGH) };
        if high < 0 {
            return end;
        }
        close(end);
        high
    });
    INODE.store(inode(ends[0]), Ordering::SeqCst);
    for (place, end) in ENDS.iter().zip(ends) {
        place.store(end, Ordering::SeqCst);
    }
}

fn close(descriptor: c_int) {
    // SAFETY: each caller has made the descriptor, or has checked that it owns it.
    unsafe { libc::close(descriptor) };
}

/// The inode number of a descriptor's file; 0 if the descriptor is closed.
fn inode(descriptor: c_int) -> u64 {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `found` has room for the answer, and the call accepts any number.
    if unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: `fstat` has succeeded and filled it.
    unsafe { found.assume_init() }.st_ino
}

/// The descriptor of an end of the pipe. `which` is 0 for the end to read, 1 for the end to write.
fn end(which: usize) -> Option<c_int> {
    let end = ENDS[which].load(Ordering::SeqCst);
    (end >= 0 && inode(end) == INODE.load(Ordering::SeqCst)).then_some(end)
}

/// Wakes all engine threads that wait for descriptors.
pub(super) fn ring() {
    keeping_errno(|| {
        if let Some(to) = end(1) {
            // SAFETY: the call writes one byte.
            unsafe { libc::write(to, [0_u8].as_ptr().cast(), 1) };
        }
    });
}

/// Empties the pipe, so that engine threads can wait again.
pub(super) fn stop_ringing() {
    keeping_errno(|| {
        let mut bytes = [0_u8; 16];
        // SAFETY: `bytes` has room for 16 bytes. Reading an empty pipe returns an error at once.
        while end(0).is_some_and(|from| unsafe { libc::read(from, bytes.as_mut_ptr().cast(), 16) } > 0) {}
    });
    // The loop may also have removed the byte of a call that started in the meantime.
    if PAUSES.load(Ordering::SeqCst) != 0 {
        ring();
    }
}

/// In an engine thread: waits until a descriptor is ready, even if the engine thread pauses and continues several
/// times. Returns false if the time is over first.
pub(crate) fn wait_for(descriptor: c_int, events: c_short, longest: Option<Duration>) -> bool {
    let start = clock::nanoseconds();
    loop {
        pause_point();
        let passed = Duration::from_nanos(clock::nanoseconds().saturating_sub(start));
        let left = longest.map_or(LONGEST, |longest| longest.saturating_sub(passed).min(LONGEST));
        let mut both = [
            libc::pollfd { fd: descriptor, events, revents: 0 },
            libc::pollfd { fd: end(0).unwrap_or(-1), events: libc::POLLIN, revents: 0 },
        ];
        let milliseconds = left.as_micros().div_ceil(1000) as c_int;
        // SAFETY: `both` contains two descriptors. The kernel skips a descriptor that is -1.
        unsafe { libc::poll(both.as_mut_ptr(), 2, milliseconds) };
        if both[0].revents != 0 {
            return true;
        }
        if left.is_zero() {
            return false;
        }
        if both[1].revents == 0 {
            end_if_alone();
        } else if PAUSES.load(Ordering::SeqCst) == 0 {
            stop_ringing();
        }
    }
}

/// Closes the pipe in the child of a fork: the pipe belongs to the parent.
pub(super) fn after_fork_in_child() {
    for which in [0, 1] {
        if let Some(end) = end(which) {
            close(end);
        }
    }
    for end in &ENDS {
        end.store(-1, Ordering::SeqCst);
    }
}
