//! Files that are whole or not there.

use std::fs::File;
use std::io;
use std::path::Path;

/// Calls `write` with a new file, and gives the file its name once `write` is done.
///
/// Until then the file has a random name that starts with `incomplete-`, in the same folder. It is opened
/// exclusively, so that it is never a file or a link that somebody else has put there, and on Unix only this user may
/// read and write it. An error or a panic of `write` removes it. A file that already has the name `path` is replaced.
///
/// # Errors
///
/// The error of `write`, or of creating or renaming the file.
pub(crate) fn atomic_write<T>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    let (Some(folder), Some(_)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    // The parent of a name without a folder is empty.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut file = tempfile::Builder::new().prefix("incomplete-").rand_bytes(16).tempfile_in(folder)?;
    let written = write(file.as_file_mut())?;
    file.persist(path)?;
    Ok(written)
}
