//! Running programs with a preloaded library: checks whether that works, and waits for the program so that callers
//! see its signals and exit status.

mod executable;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use crate::platform;

pub use executable::{LaunchObstacle, check, contains_dmd};

/// The words to append to `$DMD` for a program. From these words the processes that it starts know which process
/// was the first, and which folder relative names of dumps belong to.
pub fn words_for_first_process() -> OsString {
    let folder = std::env::current_dir().unwrap_or_default();
    dmd_format::first_process::suffix(&folder)
}

/// Writes a library that this program contains to a folder that only this user can change, and returns its absolute path.
/// Without `folders`, the folder is in the user's cache, or else in the one for temporary files. A library of an
/// earlier call stays if it has the same contents, also while programs use it.
///
/// # Errors
///
/// If no folder can be used: another user can change it, its file system is mounted with `noexec`, or its path has a space or a
/// colon, which `$LD_PRELOAD` cannot hold. The error has the reason for each folder.
pub fn unpack_library(name: &str, contents: &[u8], folders: Option<&[PathBuf]>) -> io::Result<PathBuf> {
    match folders {
        Some(folders) => platform::unpack(name, contents, folders),
        None => platform::unpack(name, contents, &platform::folders_for_unpacked()),
    }
}

/// Runs a program to its end. Forwards the signals that another process sends to this process. Signals of the
/// terminal reach the program directly, and do not end this process before it.
///
/// # Errors
///
/// If the program cannot be started or signal handlers cannot be installed.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    run_with(command, |_| {})
}

/// As [`run`]. Calls `started` with the process id once the program runs.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<ExitStatus> {
    platform::run_to_end(command, started)
}

/// Ends this process by the signal that ended the program, or returns the exit code for `main`.
pub fn end_like(status: ExitStatus) -> ExitCode {
    platform::end_like(status)
}

/// The number of the signal that ended a program, if one did.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    platform::ending_signal(status)
}

/// The file of a command: the path itself if it contains a slash, otherwise the first executable file in `$PATH`.
pub fn find(command: &OsStr) -> Option<PathBuf> {
    let path = Path::new(command);
    if command.to_string_lossy().contains('/') {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| platform::is_executable(path))
}
