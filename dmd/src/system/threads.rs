//! Where the threads of this process are, for a reader of a copy. The copy has one thread:
//! `dmd_format::tables` has the layout.

use core::ffi::{CStr, c_int};
use core::iter;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::io::{Cursor, Write as _};

use dmd_format::tables::{RECORDED, THREAD, THREAD_NAME};

use crate::system::memory;

/// Bytes of the table, and of the part for the threads of the system, of which it holds some 26,000. Untouched pages cost
/// nothing.
const BYTES: usize = 64 << 20;
const MOST: usize = 1 << 20;

const NUMBERS: usize = 16;

/// The length of a path in `/proc/self/task`, at most.
const PATH: usize = 64;

/// Bytes of the kernel's text about a thread's system call, and of a piece of a list of a folder.
const TEXT: usize = 256;
const LIST: usize = 4096;

/// An entry of a folder: an inode, an offset, the length of the entry, a kind, and the name, which ends at a 0.
const ENTRY_LENGTH: usize = 16;
const ENTRY_NAME: usize = 19;

/// The table of a copy. Null in a process that is not one.
pub(crate) static THREADS: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// The table while it is made.
pub(crate) struct ThreadTable {
    bytes: &'static mut [u8],
    listed: usize,
    recorded: usize,
}

impl ThreadTable {
    /// Asks the system where each thread is; `None` if there is no memory. A thread that waits stays where it is only if it
    /// waits for a lock that this one holds.
    pub(crate) fn listed() -> Option<Self> {
        let pages = memory::map_for_dump(BYTES);
        if pages.is_null() {
            return None;
        }
        // SAFETY: zeroed pages of this size, which only this thread has.
        let bytes = unsafe { slice::from_raw_parts_mut(pages, BYTES) };
        let mut threads = Self { bytes, listed: 0, recorded: 0 };
        for_each_thread(|name| {
            let at = NUMBERS + threads.listed * THREAD;
            let Some(row) = threads.bytes[..MOST].get_mut(at..at + THREAD) else { return };
            let Some(number) = str::from_utf8(name).ok().and_then(|name| name.parse::<u64>().ok()) else {
                return;
            };
            let (stack, code) = place_of(number);
            for (word, value) in row.chunks_exact_mut(8).zip([number, stack, code]) {
                word.copy_from_slice(&value.to_le_bytes());
            }
            let mut text = [0; THREAD_NAME];
            let filled = read(number, "comm", &mut text);
            let end = text[..filled].iter().position(|byte| *byte == b'\n').unwrap_or(0);
            row[THREAD - THREAD_NAME..][..end].copy_from_slice(&text[..end]);
            threads.listed += 1;
        });
        Some(threads)
    }

    /// Adds a thread by its thread pointer, with the frames of its last stack, outermost first.
    pub(crate) fn add(&mut self, thread: usize, frames: impl ExactSizeIterator<Item = [usize; 3]>) {
        let at = NUMBERS + self.listed * THREAD + self.recorded * RECORDED;
        let Some(rows) = self.bytes.get_mut(at..at + (1 + frames.len()) * RECORDED) else { return };
        self.recorded += 1 + frames.len();
        let rows = rows.chunks_exact_mut(RECORDED);
        for (row, words) in rows.zip(iter::once([thread, frames.len(), 0]).chain(frames)) {
            for (word, value) in row.chunks_exact_mut(8).zip(words) {
                word.copy_from_slice(&(value as u64).to_le_bytes());
            }
        }
    }

    /// In the copy: shows the table to readers.
    pub(crate) fn show(&mut self) {
        for (number, count) in self.bytes.chunks_exact_mut(8).zip([self.listed, self.recorded]) {
            number.copy_from_slice(&(count as u64).to_le_bytes());
        }
        THREADS.store(self.bytes.as_mut_ptr(), Ordering::Release);
    }
}

impl Drop for ThreadTable {
    fn drop(&mut self) {
        // SAFETY: mapped with this size; nobody uses the bytes after this.
        unsafe { memory::unmap_for_dump(self.bytes.as_mut_ptr(), BYTES) };
    }
}

/// The stack pointer of a thread and the address of its next instruction; zeros if it runs.
fn place_of(number: u64) -> (u64, u64) {
    let mut text = [0; TEXT];
    let filled = read(number, "syscall", &mut text);
    let text = str::from_utf8(&text[..filled]).unwrap_or_default().trim_end();
    let mut words = text.rsplit(' ').map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    match (words.next().flatten(), words.next().flatten()) {
        (Some(code), Some(stack)) => (stack, code),
        _ => (0, 0),
    }
}

/// Calls `each` with the names in the folder of threads.
pub(super) fn for_each_thread(mut each: impl FnMut(&[u8])) {
    let folder = open(c"/proc/self/task");
    let mut list = [0; LIST];
    loop {
        // SAFETY: a place for a part of the list. The call fails if there is no folder.
        let filled = unsafe { libc::syscall(libc::SYS_getdents64, folder, list.as_mut_ptr(), list.len()) };
        let Some(mut rest) = usize::try_from(filled).ok().and_then(|filled| list.get(..filled)) else {
            break;
        };
        if rest.is_empty() {
            break;
        }
        while let Some(length) = rest.get(ENTRY_LENGTH..ENTRY_LENGTH + 2) {
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            let Some(entry) = rest.get(..length).filter(|entry| entry.len() > ENTRY_NAME) else { break };
            each(entry[ENTRY_NAME..].split(|byte| *byte == 0).next().unwrap_or_default());
            rest = &rest[length..];
        }
    }
    close(folder);
}

/// Reads the start of a file of a thread, which has this name in the folder of threads. Returns how many bytes it filled.
pub(super) fn read_of_thread(name: &[u8], file: &str, into: &mut [u8]) -> usize {
    let number = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    number.map_or(0, |number| read(number, file, into))
}

/// Reads the start of a file of a thread. Returns how many bytes it filled.
fn read(number: u64, file: &str, into: &mut [u8]) -> usize {
    let mut path = [0; PATH];
    let Ok(()) = write!(Cursor::new(&mut path[..PATH - 1]), "/proc/self/task/{number}/{file}") else {
        return 0;
    };
    let Ok(path) = CStr::from_bytes_until_nul(&path) else { return 0 };
    let file = open(path);
    // SAFETY: a place for these bytes. The call fails if there is no file.
    let filled = unsafe { libc::read(file, into.as_mut_ptr().cast(), into.len()) };
    close(file);
    usize::try_from(filled).unwrap_or(0)
}

/// A descriptor, or -1.
fn open(path: &CStr) -> c_int {
    // SAFETY: a string that ends at a 0.
    unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }
}

fn close(descriptor: c_int) {
    // SAFETY: a descriptor of this module, or -1, which the call refuses.
    unsafe { libc::close(descriptor) };
}
