//! Folders and files that only this user can read.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::platform::ListenError;

const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

#[allow(unsafe_code, reason = "calls the kernel")]
pub(crate) fn own_uid() -> u32 {
    // SAFETY: `geteuid` has no precondition.
    unsafe { libc::geteuid() }
}

/// The folder for the sockets of this user's processes: `about-memory` in `XDG_RUNTIME_DIR`, if that folder belongs
/// to this user (after `sudo` it does not), otherwise `/tmp/about-memory-<uid>`.
pub(crate) fn socket_folder() -> Result<PathBuf, ListenError> {
    let uid = own_uid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| {
        folder.is_absolute() && fs::metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == uid)
    });
    Ok(match runtime {
        Some(folder) => folder.join("about-memory"),
        None => PathBuf::from(format!("/tmp/about-memory-{uid}")),
    })
}

/// Creates the folder if it does not exist, and checks it.
pub(crate) fn make_private_folder(folder: &Path) -> Result<(), ListenError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(ListenError::Io(folder.to_owned(), error));
        }
        _ => {}
    }
    check_private_folder(folder)
}

/// Checks that the folder belongs to this user, is closed to others, and is not a symbolic link, and that no other
/// user can replace it.
pub(crate) fn check_private_folder(folder: &Path) -> Result<(), ListenError> {
    let io = |error| ListenError::Io(folder.to_owned(), error);
    let uid = own_uid();
    let found = fs::symlink_metadata(folder).map_err(io)?;
    if !found.is_dir() {
        return Err(ListenError::NotAFolder(folder.to_owned()));
    }
    if found.uid() != uid {
        return Err(ListenError::ForeignOwner(folder.to_owned(), found.uid()));
    }
    if mode(&found) & 0o077 != 0 {
        return Err(ListenError::NotPrivate(folder.to_owned(), mode(&found)));
    }
    let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    let found = fs::metadata(parent).map_err(|error| ListenError::Io(parent.to_owned(), error))?;
    if found.uid() != uid && found.uid() != 0 {
        return Err(ListenError::ForeignOwner(parent.to_owned(), found.uid()));
    }
    if mode(&found) & WRITABLE_BY_OTHERS != 0 && mode(&found) & STICKY == 0 {
        return Err(ListenError::NotPrivate(parent.to_owned(), mode(&found)));
    }
    Ok(())
}

fn mode(found: &Metadata) -> u32 {
    found.permissions().mode() & 0o7777
}

/// Creates a folder for this user only. Fails if the path exists.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a file that only this user can read. Fails if the path exists.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Removes a folder and the files in it.
pub(crate) fn remove_private_folder(folder: &Path) -> io::Result<()> {
    for name in super::proc::names_in(folder)? {
        fs::remove_file(folder.join(name))?;
    }
    fs::remove_dir(folder)
}
