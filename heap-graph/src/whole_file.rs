//! Files that are whole or not there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file of its own, called `incomplete-` and the name until it is whole, and readable by this user only.
pub(crate) fn write_whole<T>(path: &Path, write: impl FnOnce(File) -> io::Result<T>) -> io::Result<T> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut incomplete = OsString::from("incomplete-");
    incomplete.push(name);
    let incomplete = path.with_file_name(incomplete);
    let mut incomplete = Incomplete { path: incomplete, is_whole: false };
    let written = write(create_private(&incomplete.path)?)?;
    fs::rename(&incomplete.path, path)?;
    incomplete.is_whole = true;
    Ok(written)
}

/// Removed after an error, and after a panic of what was to be written.
struct Incomplete {
    path: PathBuf,
    is_whole: bool,
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        if !self.is_whole {
            // What went wrong is told; that this may, too, is not.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A new file: one that was left over might be open to others, or lead elsewhere.
fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
