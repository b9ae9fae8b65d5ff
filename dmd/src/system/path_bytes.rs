//! Paths as bytes, as in `$DMD` and in the functions for C.

use std::path::PathBuf;

/// Makes a path from bytes. On Windows they are UTF-8.
#[cfg(unix)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;

    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Makes a path from bytes. On Windows they are UTF-8.
#[cfg(windows)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
