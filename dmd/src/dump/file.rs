//! The files of dumps and recordings.

#[cfg(target_os = "linux")]
mod of_recording;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::system::process::{Numbered, Output};
#[cfg(target_os = "linux")]
pub(crate) use of_recording::{open_again, open_recording, open_requested};

/// Most names for processes with the same number: further ones overwrite each other's dumps.
const MOST_OF_A_NUMBER: u32 = 10_000;

/// Opens the file for writing, and returns its name.
pub(super) fn open(output: &Output) -> (PathBuf, io::Result<File>) {
    match output {
        Output::At(path) => (path.clone(), open_at(path, false)),
        Output::Numbered(names) => open_numbered(names),
    }
}

/// A process overwrites its own dumps, and never another process's.
fn open_numbered(names: &Numbered) -> (PathBuf, io::Result<File>) {
    if let Some(which) = names.taken() {
        let path = names.name(which);
        let file = open_at(&path, false);
        return (path, file);
    }
    let mut which = 0;
    loop {
        let path = names.name(which);
        let file = open_at(&path, which < MOST_OF_A_NUMBER);
        match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => which += 1,
            file => {
                names.take(which);
                return (path, file);
            }
        }
    }
}

/// Only this user may read the file, since it contains memory of the program. If nobody reads a pipe, opening it
/// fails and does not wait.
#[cfg(unix)]
fn open_at(path: &Path, is_new: bool) -> io::Result<File> {
    use std::fs::Permissions;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    let mut options = OpenOptions::new();
    options.write(true).create(true).create_new(is_new).truncate(!is_new).mode(0o600);
    let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        // A file from before may be open to others. Another user's file stays as it is.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    // SAFETY: `fcntl` reads flags of a descriptor that `file` keeps open.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: `fcntl` sets flags of a descriptor that `file` keeps open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    Ok(file)
}

/// Opens a file as the system does by default: its folder says who may read it.
#[cfg(windows)]
fn open_at(path: &Path, is_new: bool) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).create_new(is_new).truncate(!is_new).open(path)
}
