//! Paths that a file with symbols contains.

use std::ffi::OsString;

/// The text of a path that a file contains as bytes. Unix takes them as they are. Elsewhere a path is Unicode, and
/// what is not becomes a replacement character, so that no file has the path.
pub(super) fn path_text(bytes: &[u8]) -> OsString {
    #[cfg(unix)]
    {
        std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
    }
    #[cfg(not(unix))]
    {
        String::from_utf8_lossy(bytes).into_owned().into()
    }
}
