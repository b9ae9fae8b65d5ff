//! The folder of a session for the files that it writes. Only this user can read it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::temporary::TemporaryFolder;

/// The folder, which exists from the first file on.
#[derive(Debug)]
enum Folder {
    None,
    Open(TemporaryFolder),
    /// The session has ended and writes no more.
    Ended,
}

#[derive(Debug)]
pub(super) struct Files(Mutex<Folder>);

impl Default for Files {
    fn default() -> Self {
        Self(Mutex::new(Folder::None))
    }
}

impl Files {
    /// Makes a file or folder inside.
    pub(super) fn with<T>(&self, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Folder::None = *folder {
            *folder = Folder::Open(TemporaryFolder::new()?);
        }
        match &*folder {
            Folder::Open(folder) => make(folder.path()),
            Folder::None | Folder::Ended => Err(io::Error::other("the session has ended")),
        }
    }

    /// Removes the folder with all that is in it.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Folder::Ended;
    }
}
