//! Reads from a place of a file, without moving a cursor that several readers would share.

use std::fs::File;
use std::io;

/// Reads some bytes from `offset` on; 0 at the end of the file.
#[cfg(unix)]
pub(super) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

/// Reads some bytes from `offset` on; 0 at the end of the file. It moves the cursor, which has no other use.
#[cfg(windows)]
pub(super) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

/// Reads from `offset` on until `into` is full, the file ends or a read fails. Returns how many bytes it filled.
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
