//! Temporary files and folders that only this user can read.
//!
//! Dropping a [`TemporaryFolder`] removes it. When the process ends, [`remove_all`] removes the folder, and every
//! incomplete file of [`write_new`]. A killed process leaves its folder; the next process that creates a folder removes
//! it. Each process keeps a file in its folder locked, so that the folder of a running process is not removed, even if
//! the process is in another container.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memory_report::new_file::{self, Destination, NewFile, Readers};
use tempfile::{Builder, TempDir};

/// The names of folders start with this.
const PREFIX: &str = "about-memory-";
/// The file that a folder's process keeps locked.
const LOCK: &str = ".lock";
/// The name of the lock file before it is locked. The file gets the name `LOCK` after it is locked.
const UNLOCKED: &str = ".lock-new";
/// Removing a folder is tried this many times, because another thread may still create a file in it.
const ATTEMPTS: usize = 5;

/// The files and folders that are removed when this process ends; `None` after [`remove_all`]. A thread that creates a
/// file or a folder holds the lock until the entry exists, so that `remove_all` misses no path.
static CLEANUP: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(Some(BTreeSet::new()));

fn cleanup() -> MutexGuard<'static, Option<BTreeSet<PathBuf>>> {
    CLEANUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or a folder that [`remove_all`] removes. After the entry is dropped, `remove_all` does not remove the file.
#[derive(Debug)]
struct CleanupEntry(PathBuf);

impl CleanupEntry {
    /// Runs `create`, which creates a file or a folder and returns a value and the path. Returns the value, and an
    /// entry for the path.
    ///
    /// # Errors
    ///
    /// Returns the error of `create`, or [`io::ErrorKind::Interrupted`] after `remove_all`: the process is ending, so
    /// `create` does not run.
    fn create<T>(create: impl FnOnce() -> io::Result<(T, PathBuf)>) -> io::Result<(T, Self)> {
        let mut cleanup = cleanup();
        let Some(paths) = &mut *cleanup else {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "this process is ending"));
        };
        let (value, path) = create()?;
        // The path must be absolute, because the process may change its current folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        paths.insert(path.clone());
        Ok((value, Self(path)))
    }
}

impl Drop for CleanupEntry {
    fn drop(&mut self) {
        if let Some(paths) = &mut *cleanup() {
            paths.remove(&self.0);
        }
    }
}

/// Removes the temporary folders and the incomplete files of this process, before it ends. From now on, threads that
/// still run cannot create a temporary file or folder.
pub fn remove_all() {
    let paths = cleanup().take();
    for path in paths.into_iter().flatten() {
        remove(&path);
    }
}

fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            // A file that cannot be removed stays, because the process must end.
            _ => return,
        }
    }
}

/// Like [`new_file::write`]. If a signal ends this process, the incomplete file is removed.
///
/// # Errors
///
/// Returns the error of `write`, or an error if the file cannot be created or renamed.
pub fn write_new<T, E: From<io::Error>>(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    match Destination::at_path(path)? {
        Destination::Stream(_) => new_file::write(path, readers, write),
        Destination::File(path) => {
            let (mut new, _entry) = CleanupEntry::create(|| {
                let new = NewFile::create(&path, readers)?;
                let incomplete = new.incomplete().to_owned();
                Ok((new, incomplete))
            })?;
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
    /// Holds the lock. The system releases the lock when the process ends, even if it is killed.
    _lock: Option<File>,
    _entry: CleanupEntry,
}

impl TemporaryFolder {
    /// Creates a folder, and removes the folders that killed processes of this user left.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created.
    pub fn new() -> io::Result<Self> {
        let folders = std::env::temp_dir();
        sweep(&folders);
        let ((path, lock), entry) = CleanupEntry::create(|| {
            let folder = private_folder(PREFIX, &folders)?;
            let lock = lock(folder.path())?;
            let path = folder.keep();
            Ok(((path.clone(), lock), path))
        })?;
        Ok(Self { path, _lock: lock, _entry: entry })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Creates a folder that only this user can enter. On platforms without file modes, access depends on the parent
/// folder.
pub(crate) fn private_folder(prefix: &str, within: &Path) -> io::Result<TempDir> {
    let mut private = Builder::new();
    private.prefix(prefix);
    #[cfg(unix)]
    private.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    private.tempdir_in(within)
}

/// Creates a file that only this user can read, or empties an existing file. On platforms without file modes, access
/// depends on the folder.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut private = File::options();
    private.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut private, 0o600);
    private.open(path)
}

/// Locks a new folder for this process. `None` on systems without locks, where old folders are not removed.
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

/// Removes the folders of ended processes. A folder that cannot be read stays.
fn sweep(folders: &Path) {
    for entry in fs::read_dir(folders).into_iter().flatten().flatten() {
        if is_left(&entry) {
            remove(&entry.path());
        }
    }
}

/// Whether a folder belongs to an ended process of this user.
fn is_left(entry: &DirEntry) -> bool {
    let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
        && entry.file_type().is_ok_and(|kind| kind.is_dir())
        && entry.metadata().is_ok_and(|found| is_own(&found));
    // A folder without a lock file is another kind of folder, such as a folder from `save --all`.
    is_ours && File::open(entry.path().join(LOCK)).is_ok_and(|file| try_lock(&file))
}

#[cfg(feature = "live")]
use crate::platform::{is_own, try_lock};

/// Without the feature `live`, the crate has no code for the system, so there are no locks.
#[cfg(not(feature = "live"))]
fn is_own(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(feature = "live"))]
fn try_lock(_: &File) -> bool {
    false
}
