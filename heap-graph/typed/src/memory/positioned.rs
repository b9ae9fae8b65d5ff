//! Reads from a position of a file, without moving a cursor that several readers would share.

use std::fs::File;
use std::io;

/// Reads some bytes at `offset`. Returns 0 at the end of the file.
#[cfg(unix)]
pub(super) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

/// Reads some bytes at `offset`. Returns 0 at the end of the file. It moves the cursor, which no other code uses.
#[cfg(windows)]
pub(super) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

/// Reads from `offset` until `into` is full, the file ends, or a read fails. Returns the number of bytes read.
pub(super) fn fill_at(file: &File, into: &mut [u8], offset: u64) -> usize {
    let mut filled = 0;
    while filled < into.len() {
        match read_at(file, &mut into[filled..], offset.wrapping_add(filled as u64)) {
            Ok(more) if more > 0 => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    filled
}
