//! Paths in a file with symbols.

use std::ffi::OsString;

/// A path from the bytes in a file. Unix uses the bytes unchanged. On other systems a path is Unicode: other bytes
/// become replacement characters, so that the path matches no file.
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
