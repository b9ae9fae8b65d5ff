//! Files that are whole or not there, also if the program crashes while it writes one; a crash of the machine may leave
//! a part.

use core::hash::{BuildHasher as _, Hasher as _};
use std::fs::{self, File, OpenOptions};
use std::hash::RandomState;
use std::io;
use std::path::{Path, PathBuf};

/// Calls `write` with a new file, and gives the file its name once `write` is done.
///
/// Until then the file has a random name that starts with `incomplete-`, in the same folder. It is opened
/// exclusively, so that it is never a file or a link that somebody else has put there, and on Unix only this user may
/// read and write it. An error or a panic of `write` removes it; a process that is killed
/// leaves it. A file that already has the name `path` is replaced.
///
/// # Errors
///
/// The error of `write`, or of creating or renaming the file.
pub(crate) fn atomic_write<T>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    // The keys of each state are random, so that nobody outside of this process can predict its hashes.
    let random = || RandomState::new().build_hasher().finish();
    let incomplete = path.with_file_name(format!("incomplete-{:016x}{:016x}", random(), random()));
    let mut file = create_private(&incomplete)?;
    let mut incomplete = Incomplete { path: incomplete, is_whole: false };
    let written = write(&mut file)?;
    fs::rename(&incomplete.path, path)?;
    incomplete.is_whole = true;
    Ok(written)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes the file unless it has become whole.
struct Incomplete {
    path: PathBuf,
    is_whole: bool,
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        if !self.is_whole {
            // The caller already gets the error of `write`, or its panic.
            let _ = fs::remove_file(&self.path);
        }
    }
}
