//! Maps files into memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file. If another process truncates the file during the look-up, a read ends this process. Compilers and
/// package managers replace files and do not truncate them.
pub(super) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: no process may change the file while it is mapped. Compilers and package managers see to that: they
    // replace files, as said above. The readers of the bytes accept any contents.
    unsafe { Mmap::map(&file) }
}
