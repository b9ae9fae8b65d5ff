//! The file that a dump goes to.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Opens it for writing; only this user may read it, as there is memory of the program in it. A pipe that nobody
/// reads is an error, and not a reason to wait.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        // One that was there before may have been open to others. Another user's stays as it is.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    // SAFETY: asks for flags of a descriptor that is open.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: sets flags of a descriptor that is open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    Ok(file)
}
