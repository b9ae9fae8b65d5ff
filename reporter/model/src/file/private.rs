//! Files that only this user can read.

use std::fs::File;
use std::io;
use std::path::Path;

/// Creates a file, or truncates the one that is there, and leaves it readable by this user only.
#[cfg(unix)]
pub(super) fn create_or_replace(path: &Path) -> io::Result<File> {
    use std::fs::{OpenOptions, Permissions};
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if file.metadata()?.is_file() {
        // The file of another user, to which this user may write, keeps its mode.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// Creates a file, or truncates the one that is there; the folder decides who may read it.
#[cfg(not(unix))]
pub(super) fn create_or_replace(path: &Path) -> io::Result<File> {
    File::create(path)
}
