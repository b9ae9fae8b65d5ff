//! The reasons why a process cannot listen.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a process cannot answer requests from other processes.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// This crate supports its socket and its signals only on Linux.
    Unsupported,
    /// The path exists but is not a folder; perhaps it is a symbolic link.
    NotAFolder(PathBuf),
    /// The folder belongs to another user; the number is that user's id.
    ForeignOwner(PathBuf, u32),
    /// Other users can read the folder or replace its files. The number is the folder's mode.
    NotPrivate(PathBuf, u32),
    /// The file or folder could not be created or read.
    Io(PathBuf, io::Error),
    /// The listening thread, or the pipe to it, could not be created.
    Thread(io::Error),
    /// The program already has a handler for this signal.
    SignalTaken(i32),
    /// The handler for this signal could not be installed.
    Signal(i32, io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("not supported on this system"),
            Self::NotAFolder(path) => write!(f, "{}: not a folder", path.display()),
            Self::ForeignOwner(path, uid) => write!(f, "{}: belongs to user {uid}", path.display()),
            Self::NotPrivate(path, mode) => {
                write!(f, "{}: is open to other users (mode {mode:03o}): restrict its mode", path.display())
            }
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Thread(error) => write!(f, "cannot start the listening thread: {error}"),
            Self::SignalTaken(signal) => write!(f, "signal {signal} has a handler already"),
            Self::Signal(signal, error) => write!(f, "signal {signal} cannot be handled: {error}"),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) | Self::Thread(error) | Self::Signal(_, error) => Some(error),
            _ => None,
        }
    }
}
