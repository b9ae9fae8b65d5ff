//! Makes a copy of the process for a reader outside of it. The memory of the copy does not change while the process
//! continues.
//!
//! A raw `clone` makes the copy, so the program's fork handlers do not run, and no process gets a signal when the copy
//! ends. The copy has one thread, which runs only the code in this module, and it closes the descriptors of the
//! process.

use core::ffi::{c_int, c_long, c_ulong};
use core::sync::atomic::{AtomicI32, Ordering};
use std::io;

use memory_reporter::engine_abi::CopyHandle;

use crate::system::slot::{Inside, slot};
use crate::system::threads::{ThreadTable, for_each_thread, read_of_thread};
use crate::system::{confined, error_numbers, fork, signals};

/// The time between two checks of the copy whether the process still exists. The checks are needed because another
/// process may hold the other end of the copy's socket open.
const LOOK_MILLISECONDS: c_int = 500;

/// The maximum time in which a copy closes its descriptors.
const TIME_TO_BEGIN_MILLISECONDS: c_int = 1000;

/// Fills the arguments of `prctl` that a request does not use.
const NOTHING: c_ulong = 0;

/// The copy closes descriptors below this number, if the system cannot close all of them at once.
const MOST_DESCRIPTORS: c_int = 65_536;

/// The maximum number of copies that [`ProcessCopies`] lists: the maximum number of peers.
const MOST: usize = 16;
/// The process numbers of the copies for which `waitpid` was not called yet; 0 for an unused entry. The number is
/// negative if the program has waited for the copy.
static COPIES: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];

/// The copies of this process. A program must not find them among its children.
#[derive(Debug)]
pub struct ProcessCopies;

impl ProcessCopies {
    /// Whether this process has copies.
    #[inline]
    pub fn any() -> bool {
        COPIES.iter().any(|copy| copy.load(Ordering::Relaxed) != 0)
    }

    /// Whether this process is a copy for which the program has not waited.
    pub fn has(process: c_int) -> bool {
        process > 0 && COPIES.iter().any(|copy| copy.load(Ordering::Relaxed) == process)
    }

    /// Records that the program has waited for this process. Returns whether the process is a copy.
    pub fn has_ended(process: c_int) -> bool {
        let ended = |copy: &AtomicI32| {
            copy.compare_exchange(process, -process, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        Self::has(process) && COPIES.iter().any(ended)
    }

    /// Whether this process has children, and all of them are copies. Returns false if the system does not list the
    /// children.
    pub fn are_all_children() -> bool {
        let (mut copies, mut others) = (0, 0);
        for_each_thread(|thread| {
            let mut text = [0; CHILDREN];
            let filled = read_of_thread(thread, "children", &mut text);
            for number in text[..filled].split(|byte| *byte == b' ').filter(|number| !number.is_empty()) {
                let number = str::from_utf8(number).ok().and_then(|number| number.parse::<c_int>().ok());
                let is_copy = |copy: &AtomicI32| Some(copy.load(Ordering::Relaxed)) == number;
                if COPIES.iter().any(is_copy) { copies += 1 } else { others += 1 }
            }
        });
        copies > 0 && others == 0
    }
}

/// The maximum number of bytes of a list of children that are read. The list of all copies is shorter.
const CHILDREN: usize = 512;

/// Makes a copy, or returns the system's error number. The process stops for as long as a fork takes. In the copy,
/// `add_stacks` adds the stacks that the engine has.
pub(crate) fn make(add_stacks: fn(&mut ThreadTable)) -> Result<CopyHandle, c_int> {
    // In a signal handler that interrupted an allocation, this thread may hold a lock. If a filter of system calls is
    // installed, the calls may end the process.
    if slot().guard.is_set() || confined::is_confined() {
        return Err(error_numbers::BUSY);
    }
    let _inside = Inside::deeper();
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` is a place for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(error_number());
    }
    let [theirs, hold] = ends;
    // SAFETY: the function has no precondition.
    let process = unsafe { libc::getpid() };
    // The copy keeps the mask, so no handler of the program runs in it.
    let before = signals::block_all();
    let made = fork::with_all_locks(|| {
        let mut threads = ThreadTable::listed();
        // SAFETY: without flags, the child gets its own memory and a copy of this stack.
        let child = unsafe { libc::syscall(libc::SYS_clone, 0_usize, 0_usize, 0_usize, 0_usize, 0_usize) };
        match child {
            0 => {
                if let Some(threads) = &mut threads {
                    add_stacks(threads);
                    threads.show();
                }
                wait(theirs, process)
            }
            child if child > 0 => {
                let copy = CopyHandle { process: child as c_int, hold };
                // Keep the copy's number: if a thread of the program waits for any child, the answer must leave out the
                // copy.
                let is_free = |place: &&AtomicI32| {
                    place.compare_exchange(0, copy.process, Ordering::AcqRel, Ordering::Relaxed).is_ok()
                };
                let _ = COPIES.iter().find(is_free);
                Ok(copy)
            }
            _ => Err(error_number()),
        }
    });
    signals::set_mask(before);
    close(theirs);
    if made.is_ok() {
        // Wait until the copy is ready: the caller may read it at once.
        is_told(hold, TIME_TO_BEGIN_MILLISECONDS);
    } else {
        close(hold);
    }
    made
}

/// Ends a copy, and waits until it has ended.
pub(crate) fn end(copy: CopyHandle) {
    // Closing is not enough: a process that the program forked in the meantime may have the descriptor, too.
    // SAFETY: the descriptor of a socket.
    unsafe { libc::shutdown(copy.hold, libc::SHUT_RDWR) };
    close(copy.hold);
    let place = COPIES.iter().find(|place| place.load(Ordering::Acquire).abs() == copy.process);
    let is_there = place.is_none_or(|place| place.load(Ordering::Acquire) > 0);
    if is_there {
        wait_for(copy.process);
    }
    if let Some(place) = place {
        place.store(0, Ordering::Release);
    }
}

/// Waits until a copy has ended.
fn wait_for(process: c_int) {
    loop {
        // SAFETY: a null pointer requests no status. The flag includes children that send no signal.
        let waited = unsafe { libc::waitpid(process, core::ptr::null_mut(), libc::__WALL) };
        if waited >= 0 || error_number() != libc::EINTR {
            return;
        }
    }
}

/// Runs in the copy: it reports that it is ready, waits until the other end of its socket or the process ends, and
/// ends. It only makes system calls, because other threads may have been in the middle of any operation.
fn wait(socket: c_int, process: c_int) -> ! {
    // A kernel without this permission does not need it.
    // SAFETY: the call lets other processes of this user read this process's memory.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, NOTHING, NOTHING, NOTHING) };
    // SAFETY: the name ends in 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"dmd-copy".as_ptr(), NOTHING, NOTHING, NOTHING) };
    close_all_but(socket);
    // SAFETY: the call sends one byte. If no process reads it, the copy ends below.
    unsafe { libc::send(socket, [0_u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
    loop {
        // SAFETY: the function has no precondition.
        if is_told(socket, LOOK_MILLISECONDS) || unsafe { libc::getppid() } != process {
            // SAFETY: the call ends this process, which has only one thread.
            unsafe { libc::_exit(0) };
        }
    }
}

/// Whether the other end of a socket sends a byte or closes within this time.
fn is_told(socket: c_int, milliseconds: c_int) -> bool {
    let mut end = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    // SAFETY: `end` is one descriptor.
    unsafe { libc::poll(&raw mut end, 1, milliseconds) != 0 }
}

fn close_all_but(kept: c_int) {
    let close_range = |first: c_int, last: c_long| {
        // SAFETY: the call closes descriptors of this process, and its only thread uses none of them.
        first as c_long > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    };
    if close_range(0, c_long::from(kept) - 1) && close_range(kept + 1, c_long::from(u32::MAX)) {
        return;
    }
    (0..MOST_DESCRIPTORS).filter(|descriptor| *descriptor != kept).for_each(close);
}

fn close(descriptor: c_int) {
    // SAFETY: no other code uses this descriptor.
    unsafe { libc::close(descriptor) };
}

fn error_number() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(error_numbers::IO)
}
