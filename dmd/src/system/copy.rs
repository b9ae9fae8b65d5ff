//! Makes a copy of the process for a reader outside of it. The memory of the copy does not change while the process
//! continues.
//!
//! A raw `clone` makes the copy, so the program's fork handlers do not run, and no process gets a signal when the copy
//! ends. The copy has one thread, which runs only the code in this module. The copy closes all descriptors that it got
//! from the process, except its own socket.

use core::ffi::{c_char, c_int, c_long, c_ulong};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering};
use std::io;

use memory_reporter::engine_abi::CopyHandle;

use crate::system::slot::{Inside, slot};
use crate::system::threads::{ThreadTable, for_each_thread, read_of_thread};
use crate::system::{confined, error_numbers, fork, process_id, signals};

/// The copy checks at this interval whether the process still exists. The checks are needed because another process
/// may hold the other end of the copy's socket open.
const LOOK_MILLISECONDS: c_int = 500;

/// The maximum time for which the process waits until a new copy is ready.
const TIME_TO_BEGIN_MILLISECONDS: c_int = 1000;

/// Fills the arguments of `prctl` that a request does not use.
const NOTHING: c_ulong = 0;

/// The copy closes descriptors below this number, if the system cannot close all of them at once.
const MOST_DESCRIPTORS: c_int = 65_536;

/// The maximum number of copies for peers that [`ProcessCopies`] lists: the maximum number of peers.
const MOST: usize = 16;
/// The maximum number of kept copies at one time. The reader keeps one copy, and closes it when it has a newer copy.
const MOST_KEPT: usize = 4;
/// The process numbers of the copies that the engine has not waited for yet; 0 for an unused entry. The number is
/// negative if the program has waited for the copy.
static COPIES: [AtomicI32; MOST + MOST_KEPT] = [const { AtomicI32::new(0) }; MOST + MOST_KEPT];

/// The copies of this process. A program must not find them among its children.
#[derive(Debug)]
pub struct ProcessCopies;

impl ProcessCopies {
    /// Whether this process has copies.
    #[inline]
    pub fn any() -> bool {
        COPIES.iter().any(|copy| copy.load(Ordering::Relaxed) != 0)
    }

    /// Whether the process with this number is a copy for which the program has not waited.
    pub fn has(process: c_int) -> bool {
        process > 0 && COPIES.iter().any(|copy| copy.load(Ordering::Relaxed) == process)
    }

    /// Records that the program has waited for the process with this number. Returns whether that process is a copy.
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

/// The maximum number of bytes that are read from a list of children. The list of all copies is shorter.
const CHILDREN: usize = 512;

/// Makes a copy, or returns the system's error number. The process stops for as long as a fork takes. In the copy,
/// `add_stacks` adds the stacks that the engine has.
pub(crate) fn make(add_stacks: fn(&mut ThreadTable)) -> Result<CopyHandle, c_int> {
    // In a signal handler that interrupted an allocation this thread may hold a lock.
    if slot().guard.is_set() {
        return Err(error_numbers::BUSY);
    }
    let _inside = Inside::deeper();
    let (process, hold) = clone_process(add_stacks, None)?;
    // Hide the copy from a thread of the program that waits for children.
    let _ = note(&COPIES[..MOST], process);
    // Wait until the copy is ready, since the caller reads it after this call.
    is_told(hold, TIME_TO_BEGIN_MILLISECONDS);
    Ok(CopyHandle { process, hold })
}

/// The facts about a kept copy that the copy sends to its reader, as three numbers of 64 bits.
pub(crate) struct CopyFacts {
    /// The process that was copied.
    pub(crate) process: u64,
    /// Bytes of all blocks.
    pub(crate) bytes: u64,
    /// The time since the engine started.
    pub(crate) milliseconds: u64,
}

impl CopyFacts {
    fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let words = [self.process, self.bytes, self.milliseconds];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Makes a copy that connects to the socket at `path` and sends the facts. The copy stays until the reader closes the
/// connection, even if this process ends earlier. The calling thread is inside the engine, and holds no lock.
pub(crate) fn keep(path: &[u8], facts: CopyFacts, add_stacks: fn(&mut ThreadTable)) -> Result<(), c_int> {
    let places = &COPIES[MOST..];
    for place in places {
        let process = place.load(Ordering::Acquire);
        // SAFETY: a null pointer asks for no status. `__WALL` includes children that send no signal when they end.
        let ended =
            || unsafe { libc::waitpid(process, core::ptr::null_mut(), libc::__WALL | libc::WNOHANG) != 0 };
        if process < 0 || process > 0 && ended() {
            // Another thread may have noted its new copy here meanwhile.
            let _ = place.compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    // A child of `vfork` shares its parent's memory, so it must not change the parent's list of copies.
    // SAFETY: the function has no precondition.
    let this = unsafe { libc::getpid() };
    let is_own = !process_id::is_another_than_started() || fork::is_child_of_fork(this as u32);
    if !is_own || places.iter().all(|place| place.load(Ordering::Relaxed) != 0) {
        return Err(error_numbers::BUSY);
    }
    let reader =
        KeepingReader { address: address_of(path).ok_or(error_numbers::INVALID)?, facts: facts.bytes() };
    let (process, hold) = clone_process(add_stacks, Some(&reader))?;
    let _ = note(places, process);
    // Wait until the copy has connected to the reader, so that the reader has the copy even if this process ends next.
    is_told(hold, TIME_TO_BEGIN_MILLISECONDS);
    close(hold);
    Ok(())
}

/// The reader that keeps a copy: the address of its socket, and the bytes that the copy sends.
struct KeepingReader {
    address: libc::sockaddr_un,
    facts: [u8; 24],
}

/// The address of the socket at a path; `None` if the path is too long.
fn address_of(path: &[u8]) -> Option<libc::sockaddr_un> {
    // SAFETY: all zeros are a valid address.
    let mut address = unsafe { MaybeUninit::<libc::sockaddr_un>::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The last byte stays 0.
    let places = address.sun_path.get_mut(..path.len() + 1)?;
    for (place, byte) in places.iter_mut().zip(path) {
        *place = *byte as c_char;
    }
    Some(address)
}

/// Clones this process. Returns the number of the copy, and the socket on which the copy sends a byte once it is ready.
fn clone_process(
    add_stacks: fn(&mut ThreadTable),
    reader: Option<&KeepingReader>,
) -> Result<(c_int, c_int), c_int> {
    // A filter of system calls may end the process.
    if confined::is_confined() {
        return Err(error_numbers::BUSY);
    }
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
                begin(theirs);
                match reader {
                    Some(reader) => wait_for_reader(theirs, reader),
                    None => wait(theirs, process),
                }
            }
            child if child > 0 => Ok(child as c_int),
            _ => Err(error_number()),
        }
    });
    signals::set_mask(before);
    close(theirs);
    if made.is_err() {
        close(hold);
    }
    made.map(|child| (child, hold))
}

/// Notes a copy at a free place.
fn note(places: &[AtomicI32], process: c_int) -> bool {
    let is_free =
        |place: &AtomicI32| place.compare_exchange(0, process, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    places.iter().any(is_free)
}

/// Ends a copy, and waits until it has ended.
pub(crate) fn end(copy: CopyHandle) {
    // Closing is not enough: a process that the program forked in the meantime may also have the descriptor.
    // SAFETY: `hold` is the descriptor of a socket.
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

/// Prepares a copy that has just been made. The function makes only system calls: when the copy was made, other threads
/// may have been in the middle of any function of the C library, with its locks held.
fn begin(socket: c_int) {
    // On kernels without this request, the call fails, and readers need no permission.
    // SAFETY: the call only lets other processes of this user read the memory of this process.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, NOTHING, NOTHING, NOTHING) };
    // SAFETY: the name ends in 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"dmd-copy".as_ptr(), NOTHING, NOTHING, NOTHING) };
    close_all_but(socket);
}

fn say_ready(socket: c_int) {
    // SAFETY: the call sends one byte. If no process reads it, the copy ends by itself.
    unsafe { libc::send(socket, [0_u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
}

/// In the copy: waits until the other end of the socket is closed or the process has ended. Then ends the copy.
fn wait(socket: c_int, process: c_int) -> ! {
    say_ready(socket);
    loop {
        // SAFETY: the function has no precondition.
        if is_told(socket, LOOK_MILLISECONDS) || unsafe { libc::getppid() } != process {
            exit();
        }
    }
}

/// In the copy: connects to the reader, and waits until the reader closes the connection. Then ends the copy.
fn wait_for_reader(socket: c_int, reader: &KeepingReader) -> ! {
    // If memory is short, the system must end the copy before the program.
    // SAFETY: the path ends in 0.
    let score = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY) };
    // SAFETY: the text has four bytes. The call fails if the file was not opened.
    unsafe { libc::write(score, c"1000".as_ptr().cast(), 4) };
    close(score);
    // SAFETY: the function has no precondition.
    let stream = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    let length = size_of_val(&reader.address) as libc::socklen_t;
    // SAFETY: the address has this length.
    let connected = unsafe { libc::connect(stream, (&raw const reader.address).cast(), length) };
    if connected != 0 {
        exit();
    }
    let facts = &reader.facts;
    // SAFETY: `facts` has this length.
    unsafe { libc::send(stream, facts.as_ptr().cast(), facts.len(), libc::MSG_NOSIGNAL) };
    say_ready(socket);
    close(socket);
    while !is_told(stream, LOOK_MILLISECONDS) {}
    exit()
}

fn exit() -> ! {
    // SAFETY: the call ends this process, which has one thread.
    unsafe { libc::_exit(0) }
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
