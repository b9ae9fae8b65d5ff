//! Programs started under a library that the loader puts first: what stands in the way, and how to wait
//! for them as if they had been started without us.

mod executable;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use crate::platform;

pub use executable::{Obstacle, check};

/// What goes behind all words of `$DMD` for a program that is started: by it those that the program starts know
/// which of them was the first, and the folder that names of dumps are meant to be in.
pub fn words_for_first_process() -> OsString {
    let folder = std::env::current_dir().unwrap_or_default();
    dmd::words_for_first_process(&folder)
}

/// Runs a program to its end. Signals that somebody sends to this process are passed on to it; those of
/// the terminal reach it anyway, and do not end this process before it.
///
/// # Errors
///
/// If it cannot be started, or there can be no handlers of signals.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    platform::run_to_end(command)
}

/// Ends as the program has ended: by the same signal, if it was one; otherwise what to return from `main`.
pub fn end_like(status: ExitStatus) -> ExitCode {
    platform::end_like(status)
}

/// The number of the signal that ended a program.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    platform::ending_signal(status)
}

/// The file that a command names: itself if it has a slash, otherwise the first executable one in `$PATH`.
pub fn find(command: &OsStr) -> Option<PathBuf> {
    let path = Path::new(command);
    if command.to_string_lossy().contains('/') {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| platform::is_executable(path))
}
