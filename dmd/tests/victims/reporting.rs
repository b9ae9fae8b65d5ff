//! A program that only links `memory-reporter`. Usage, under `libdmd.so`, with `DMD`: `reporting FILE`. The program
//! requests the dump by the C symbol, like a debugger. Without a file the program just ends, and DMD may write a dump
//! at the end.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::hint::black_box;
use std::sync::Mutex;

static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static TABLE: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);

memory_reporter::define_reporter!("explicit/names", Heap, &NAMES, "Memory used by names.");
memory_reporter::define_reporter!("explicit/table", Heap, &TABLE, "Memory used by the table.");
// This reporter reports bytes that it has not measured.
memory_reporter::define_reporter!("explicit/guess", Heap, Bytes, 12_345, "Guessed memory, not measured.");

fn main() {
    // Once-reported: the buffer, and ten strings of 1,000 bytes.
    *NAMES.lock().expect("unpoisoned") = (0..10).map(|_| "x".repeat(1000)).collect();
    // Once-reported, although its reporter only has a pointer into the block.
    *TABLE.lock().expect("unpoisoned") = Some((0..1000).map(|n| (n, n)).collect());
    // Unreported: one block of 5,000 bytes.
    black_box(Box::leak(vec![1u8; 5000].into_boxed_slice()));
    let Some(file) = std::env::args().nth(1) else { return };
    let path = CString::new(file).expect("no 0");
    // SAFETY: the literal ends in 0.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"DMDReportAndDump".as_ptr()) };
    assert!(!symbol.is_null());
    // SAFETY: `dmd.h` declares the function of this name with this type.
    let dump: extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(symbol) };
    assert_eq!(dump(path.as_ptr()), 0);
}
