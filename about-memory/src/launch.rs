//! Runs programs with a preloaded library. Checks that the library can be preloaded, waits for the program, and passes
//! on its signals and exit status.

mod executable;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use crate::platform;

pub use executable::{LaunchObstacle, check, contains_dmd};

/// Returns the words to append to `$DMD` for a program. With these words, the program's child processes find out which
/// process was the first, and to which folder relative names of dumps belong.
pub fn words_for_first_process() -> OsString {
    let folder = std::env::current_dir().unwrap_or_default();
    dmd_format::first_process::suffix(&folder)
}

/// Unpacks a library of this program into a folder that only this user can change. Returns the absolute path of the
/// file. Without `folders`, the folder is in the user's cache, or else in the folder for temporary files. A file from
/// an earlier call stays if it has the same contents: programs may use it.
///
/// # Errors
///
/// Returns an error if no folder can be used. A folder cannot be used if another user can change it, if its file system
/// is mounted with `noexec`, or if its path has a space or a colon, which `$LD_PRELOAD` cannot contain. The error
/// contains the reason for each folder.
pub fn unpack_library(name: &str, contents: &[u8], folders: Option<&[PathBuf]>) -> io::Result<PathBuf> {
    match folders {
        Some(folders) => platform::unpack(name, contents, folders),
        None => platform::unpack(name, contents, &platform::folders_for_unpacked()),
    }
}

/// Runs a program to its end. Forwards the signals that another process sends to this process. Signals from the
/// terminal reach the program directly, and this process does not end before the program.
///
/// # Errors
///
/// Returns an error if the program cannot be started or signal handlers cannot be installed.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    run_with(command, |_| {})
}

/// Like [`run`]. Calls `started` with the process id as soon as the program runs.
///
/// # Errors
///
/// Returns the same errors as [`run`].
pub fn run_with(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<ExitStatus> {
    platform::run_to_end(command, started)
}

/// Ends this process with the signal that ended the program, or returns the exit code for `main`.
pub fn end_like(status: ExitStatus) -> ExitCode {
    platform::end_like(status)
}

/// Returns the number of the signal that ended a program; `None` if the program exited.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    platform::ending_signal(status)
}

/// Returns the file of a command: the path itself if it contains a slash, otherwise the first executable file in
/// `$PATH`.
pub fn find(command: &OsStr) -> Option<PathBuf> {
    let path = Path::new(command);
    if command.to_string_lossy().contains('/') {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| platform::is_executable(path))
}
