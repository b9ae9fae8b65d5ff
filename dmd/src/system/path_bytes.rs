//! Paths as the bytes that `$DMD` and the functions for C have.

use std::path::PathBuf;

/// The path of these bytes. On Windows they are UTF-8.
#[cfg(unix)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;

    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The path of these bytes. On Windows they are UTF-8.
#[cfg(windows)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
