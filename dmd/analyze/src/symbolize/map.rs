//! Maps files into memory.

use core::ops::Deref;
use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// The contents of a file that is mapped into memory and not copied: much of a large program is never read, and much of a
/// file may be holes.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a regular file. If another process truncates the file while it is mapped, a read ends this process. Compilers and
    /// package managers replace files and do not truncate them.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or mapped, or is not a regular one: opening a pipe would wait, and a device has no end.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        if !std::fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let file = File::open(path)?;
        // SAFETY: no process may change the file while it is mapped. Compilers and package managers see to that: they
        // replace files, as said above. The readers of the bytes accept any contents.
        unsafe { Mmap::map(&file) }.map(Self)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
