//! Writes a victim's knowledge about its own blocks to a file: lines with a construct, an address in a block and the
//! block's type.
//!
//! `libdmd.so` records the victim. `PROGRAM DUMP TRUTH` writes both files and prints a line, and ends when its
//! standard input ends.

#![allow(unreachable_pub, reason = "some victims use this file as a crate")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::OnceLock;

static OUT: OnceLock<File> = OnceLock::new();

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Opens the file for the types.
pub fn open() {
    let path = std::env::args().nth(2).expect("a path");
    let _ = OUT.set(File::create(path).expect("a file"));
}

/// Writes an address in a block, and the type of the block. It does not allocate.
#[inline(never)]
pub fn is<T: ?Sized>(construct: &str, place: *const T, name: &str) {
    let mut line = [0_u8; 4096];
    let mut rest = &mut line[..];
    let _ = writeln!(rest, "{construct}\t{:x}\t{name}", place.cast::<u8>() as usize);
    let length = 4096 - rest.len();
    let _ = OUT.get().expect("it is open").write_all(&line[..length]);
}

/// Writes the dump, and waits for the end of the standard input.
#[inline(never)]
pub fn wait() {
    let dump = CString::new(std::env::args().nth(1).expect("a path")).expect("no zeros");
    // SAFETY: the name is a C string, and null means all libraries.
    let entry = unsafe { dlsym(std::ptr::null_mut(), c"DMDDump".as_ptr()) };
    assert!(!entry.is_null(), "the library is loaded");
    // SAFETY: the library has this function with this signature.
    let entry: extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(entry) };
    entry(dump.as_ptr());
    let mut out = std::io::stdout();
    out.write_all(b"ready\n").and_then(|()| out.flush()).expect("a reader");
    let _ = std::io::stdin().lock().read(&mut [0; 1]);
}
