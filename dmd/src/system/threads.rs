//! Lists the stacks of all threads of this process for a reader of a copy: the copy itself has only one thread.
//! `dmd_format::tables` describes the layout.

use core::ffi::CStr;
use core::iter;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::io::{Cursor, Write as _};

use dmd_format::tables::{RECORDED, THREAD, THREAD_NAME};

use crate::system::raw_file::{self, RawFile};
use crate::system::{folder_list, memory};

/// The size of the table in bytes. The part for the system's threads has room for about 26,000 threads. Untouched
/// pages take no memory.
const BYTES: usize = 64 << 20;
const MOST: usize = 1 << 20;

const NUMBERS: usize = 16;

/// The maximum length of a path in `/proc/self/task`.
const PATH: usize = 64;

/// The size in bytes of the buffer for the kernel's text about a thread's system call.
const TEXT: usize = 256;

/// The table of a copy. Null in a process that is not a copy.
pub(crate) static THREADS: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// The table under construction.
pub(crate) struct ThreadTable {
    bytes: &'static mut [u8],
    listed: usize,
    recorded: usize,
}

impl ThreadTable {
    /// Reads the stack pointer of each thread from the system. Returns `None` if there is no memory. The stack pointer
    /// of a waiting thread may change after this call, unless the thread waits for a lock that this thread holds.
    pub(crate) fn listed() -> Option<Self> {
        let pages = memory::map_for_dump(BYTES);
        if pages.is_null() {
            return None;
        }
        // SAFETY: the pages are zeroed and have this size, and only this thread uses them.
        let bytes = unsafe { slice::from_raw_parts_mut(pages, BYTES) };
        let mut threads = Self { bytes, listed: 0, recorded: 0 };
        for_each_place(|number, (stack, code), name| {
            let at = NUMBERS + threads.listed * THREAD;
            let Some(row) = threads.bytes[..MOST].get_mut(at..at + THREAD) else { return };
            for (word, value) in row.chunks_exact_mut(8).zip([number, stack, code]) {
                word.copy_from_slice(&value.to_le_bytes());
            }
            row[THREAD - THREAD_NAME..][..name.len()].copy_from_slice(name);
            threads.listed += 1;
        });
        Some(threads)
    }

    /// Adds the last stack of a thread. `thread` is its thread pointer; the frames are outermost first.
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

    /// In the copy: publishes the table for readers.
    pub(crate) fn show(&mut self) {
        for (number, count) in self.bytes.chunks_exact_mut(8).zip([self.listed, self.recorded]) {
            number.copy_from_slice(&(count as u64).to_le_bytes());
        }
        THREADS.store(self.bytes.as_mut_ptr(), Ordering::Release);
    }
}

impl Drop for ThreadTable {
    fn drop(&mut self) {
        // SAFETY: the bytes were mapped with this size, and no code uses them after this call.
        unsafe { memory::unmap_for_dump(self.bytes.as_mut_ptr(), BYTES) };
    }
}

/// Calls `each` with each thread's number, its stack pointer and the address of its next instruction, and its name. The
/// addresses are zeros for this thread, and for a thread that runs.
pub(crate) fn for_each_place(mut each: impl FnMut(u64, (u64, u64), &[u8])) {
    // SAFETY: the function has no precondition.
    let this = unsafe { libc::gettid() } as u64;
    for_each_thread(|name| {
        let Some(number) = str::from_utf8(name).ok().and_then(|name| name.parse::<u64>().ok()) else {
            return;
        };
        // This thread is in the engine. Its last stack shows where the program called the engine.
        let place = if number == this { (0, 0) } else { place_of(number) };
        let mut text = [0; THREAD_NAME];
        let filled = read(number, "comm", &mut text);
        let end = text[..filled].iter().position(|byte| *byte == b'\n').unwrap_or(0);
        each(number, place, &text[..end]);
    });
}

/// The stack pointer of a thread and the address of its next instruction; zeros if the thread runs.
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

/// Calls `each` with the name of each thread's folder.
pub(super) fn for_each_thread(each: impl FnMut(&[u8])) {
    if let Ok(folder) = RawFile::open(c"/proc/self/task") {
        folder_list::for_each_name(&folder, each);
    }
}

/// Reads the start of a file of a thread. `name` is the name of the thread's folder. Returns the number of bytes read.
pub(super) fn read_of_thread(name: &[u8], file: &str, into: &mut [u8]) -> usize {
    let number = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    number.map_or(0, |number| read(number, file, into))
}

/// Reads the start of a file of a thread. Returns the number of bytes read.
pub(crate) fn read(number: u64, file: &str, into: &mut [u8]) -> usize {
    let mut path = [0; PATH];
    let Ok(()) = write!(Cursor::new(&mut path[..PATH - 1]), "/proc/self/task/{number}/{file}") else {
        return 0;
    };
    let Ok(path) = CStr::from_bytes_until_nul(&path) else { return 0 };
    raw_file::read_start(path, into)
}
