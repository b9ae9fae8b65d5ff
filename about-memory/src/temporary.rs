//! Temporary files and folders that only this user can read.
//!
//! A [`TemporaryFolder`] goes when it is dropped. If a signal ends the process, [`remove_all`] removes it, and every file
//! that has a [`CleanupEntry`]. A process that is killed leaves its folder: the next one that makes a folder removes it. A
//! folder has a file that its process keeps locked, so the folder of a running process is not removed, also of one in
//! another container.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memory_report::new_file::{self, Destination, NewFile, Readers};
use tempfile::{Builder, TempDir};

/// How the names of folders start.
const PREFIX: &str = "about-memory-";
/// The file that the process of a folder keeps locked.
const LOCK: &str = ".lock";
/// Its name before it is locked: from the moment at which a folder has a `LOCK`, the lock is held.
const UNLOCKED: &str = ".lock-new";
/// Another thread may still make a file in a folder that is being removed.
const ATTEMPTS: usize = 5;

/// The files and folders that go if a signal ends this process.
static CLEANUP: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn cleanup() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    CLEANUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or a folder that [`remove_all`] removes, until this is dropped.
#[derive(Debug)]
pub struct CleanupEntry(PathBuf);

impl CleanupEntry {
    /// An entry for a path.
    pub fn new(path: &Path) -> Self {
        // The process may change its folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        cleanup().insert(path.clone());
        Self(path)
    }
}

impl Drop for CleanupEntry {
    fn drop(&mut self) {
        cleanup().remove(&self.0);
    }
}

/// Removes what has a [`CleanupEntry`], before a signal ends this process.
pub fn remove_all() {
    for path in core::mem::take(&mut *cleanup()) {
        remove(&path);
    }
}

fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            // A file that cannot be removed stays: the process ends.
            _ => return,
        }
    }
}

/// As [`new_file::write`], and the incomplete file does not stay if a signal ends this process.
///
/// # Errors
///
/// The error of `write`, or of creating or renaming the file.
pub fn write_new<T, E: From<io::Error>>(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    match Destination::at_path(path)? {
        Destination::Stream(_) => new_file::write(path, readers, write),
        Destination::File(path) => {
            let mut new = NewFile::create(&path, readers)?;
            let _entry = CleanupEntry::new(new.incomplete());
            let written = write(new.file())?;
            new.finish()?;
            Ok(written)
        }
    }
}

/// A new folder in the folder for temporary files.
///
/// ```
/// use about_memory::temporary::TemporaryFolder;
///
/// let folder = TemporaryFolder::new().unwrap();
/// std::fs::write(folder.path().join("dump.json"), "{}").unwrap();
/// ```
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// The lock ends with the process, however that ends.
    _lock: Option<File>,
    _entry: CleanupEntry,
}

impl TemporaryFolder {
    /// Makes a folder, and removes those that killed processes of this user left.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made.
    pub fn new() -> io::Result<Self> {
        let folders = std::env::temp_dir();
        sweep(&folders);
        let folder = private_folder(PREFIX, &folders)?;
        let lock = lock(folder.path())?;
        let path = folder.keep();
        Ok(Self { _entry: CleanupEntry::new(&path), _lock: lock, path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// A folder that only this user can enter. Where folders have no mode, the folder around it decides.
pub(crate) fn private_folder(prefix: &str, within: &Path) -> io::Result<TempDir> {
    let mut private = Builder::new();
    private.prefix(prefix);
    #[cfg(unix)]
    private.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    private.tempdir_in(within)
}

/// Creates a file that only this user can read, or empties one that is there. Where files have no mode, the folder decides.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut private = File::options();
    private.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut private, 0o600);
    private.open(path)
}

/// Locks a new folder for this process; `None` on systems without locks: there are no sweeps.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let first = folder.join(UNLOCKED);
    let file = private_file(&first)?;
    if !try_lock(&file) {
        fs::remove_file(&first)?;
        return Ok(None);
    }
    fs::rename(&first, folder.join(LOCK))?;
    Ok(Some(file))
}

/// Removes the folders of processes that have ended. What cannot be looked at stays.
fn sweep(folders: &Path) {
    for entry in fs::read_dir(folders).into_iter().flatten().flatten() {
        if is_left(&entry) {
            remove(&entry.path());
        }
    }
}

/// Whether a folder is of a process of this user that has ended.
fn is_left(entry: &DirEntry) -> bool {
    let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
        && entry.file_type().is_ok_and(|kind| kind.is_dir())
        && entry.metadata().is_ok_and(|found| is_own(&found));
    // Without a lock it is another folder, such as one that `save --all` made.
    is_ours && File::open(entry.path().join(LOCK)).is_ok_and(|file| try_lock(&file))
}

#[cfg(feature = "live")]
use crate::platform::{is_own, try_lock};

/// Without the feature `live` the crate knows no system, and so no locks.
#[cfg(not(feature = "live"))]
fn is_own(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(feature = "live"))]
fn try_lock(_: &File) -> bool {
    false
}
