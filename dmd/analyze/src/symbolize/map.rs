//! Files in memory, read as they are needed.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file. It must not be cut short while it is looked at, or the process ends; compilers and
/// package managers put a new file in place of an old one.
pub(super) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: mapped to be read only, and taken for bytes that may be anything.
    unsafe { Mmap::map(&file) }
}
