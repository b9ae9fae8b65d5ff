//! Maps files into memory.

use core::ops::Deref;
use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// The contents of a file, mapped into memory without a copy: much of a large program is never read, and a file may
/// have large holes.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a regular file. If another process truncates the file while it is mapped, a read kills this process.
    /// Compilers and package managers replace files instead of truncating them.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened or mapped, or if it is not a regular file: opening a pipe would
    /// block, and a device has no end.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        if !std::fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let file = File::open(path)?;
        // SAFETY: no process may change the file while it is mapped. Compilers and package managers ensure this: they
        // replace files instead of changing them. All readers accept any contents.
        unsafe { Mmap::map(&file) }.map(Self)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
