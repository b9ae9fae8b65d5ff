//! Locks on a folder of tables. They end with the process that holds them.
//!
//! `compact.lock`: one process compacts at a time. `files.lock`: a reader lists files while no compaction replaces them.

use std::fs::{File, OpenOptions};
use std::path::Path;

use crate::error::FleetError;

/// A lock, until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock(#[allow(dead_code, reason = "the open file holds the lock")] Option<File>);

/// Excludes other compactions.
pub(crate) fn compacting(root: &Path) -> Result<FolderLock, FleetError> {
    let path = root.join("compact.lock");
    let file = created(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(FolderLock(Some(file))),
        Err(_) => Err(FleetError::at(&path, "another process compacts this folder")),
    }
}

/// Excludes readers that list files. Call this only while files are renamed and deleted.
pub(crate) fn replacing(root: &Path) -> Result<FolderLock, FleetError> {
    let path = root.join("files.lock");
    let file = created(&path)?;
    file.lock().map_err(|error| FleetError::at(&path, error))?;
    Ok(FolderLock(Some(file)))
}

/// Excludes a compaction that replaces files. A folder that was never compacted needs no lock.
pub(crate) fn listing(root: &Path) -> FolderLock {
    let file = File::open(root.join("files.lock")).ok();
    // Some file systems have no locks: a reader then risks to see a run twice or not at all.
    FolderLock(file.filter(|file| file.lock_shared().is_ok()))
}

fn created(path: &Path) -> Result<File, FleetError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    file.map_err(|error| FleetError::at(path, error))
}
