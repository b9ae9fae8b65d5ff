//! The folder of a session for the files that it writes. Only this user can read it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::temporary::TemporaryFolder;

/// The folder. It is created with the first file.
#[derive(Debug)]
enum SessionFolder {
    None,
    Open(TemporaryFolder),
    /// The session has ended and writes no more files.
    Ended,
}

#[derive(Debug)]
pub(super) struct SessionFiles(Mutex<SessionFolder>);

impl Default for SessionFiles {
    fn default() -> Self {
        Self(Mutex::new(SessionFolder::None))
    }
}

impl SessionFiles {
    /// Creates a file or a folder inside the session's folder.
    pub(super) fn with<T>(&self, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let SessionFolder::None = *folder {
            *folder = SessionFolder::Open(TemporaryFolder::new()?);
        }
        match &*folder {
            SessionFolder::Open(folder) => make(folder.path()),
            SessionFolder::None | SessionFolder::Ended => Err(io::Error::other("the session has ended")),
        }
    }

    /// Removes the folder and its contents.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = SessionFolder::Ended;
    }
}
