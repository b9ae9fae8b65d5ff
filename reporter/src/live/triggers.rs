//! Saves reports on signals, with Firefox's file names.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use memory_report::{ReportSet, file};

use crate::collect::CollectOptions;
use crate::platform::{self, ListenError, SignalTrigger};

use super::dmd_dump;
use super::turns::{DEADLINE, collect_alone, minimize_alone};

/// Saves a report to `folder` whenever the signal SIGRTMIN arrives, until the program ends. On SIGRTMIN + 1,
/// minimizes memory usage first.
///
/// The file is `memory-report-<seconds since 1970>-<pid>.json.gz`, with a number added if that name exists. Only this
/// user can read the file. Until it is complete, `incomplete-` precedes its name. If DMD records the process, the
/// signal also saves `dmd-<the same>.json.gz`. Errors go to stderr, one line each, since no caller can receive them.
///
/// The signal handler only writes a byte to a pipe, and a thread does the work. The child process of a fork ignores
/// both signals.
///
/// # Errors
///
/// Returns an error if `folder` is not a folder, if one of the signals already has a handler, if the pipe or the thread
/// cannot be created, or on systems other than Linux.
pub fn listen_to_signals(folder: impl Into<PathBuf>) -> Result<(), ListenError> {
    let folder = folder.into();
    // The program may change its working directory later.
    let folder = fs::canonicalize(&folder).map_err(|error| ListenError::Io(folder, error))?;
    if !folder.is_dir() {
        return Err(ListenError::NotAFolder(folder));
    }
    platform::on_triggers(move |trigger| {
        if let Err(error) = run(trigger, &folder) {
            let folder = folder.display();
            let _ = writeln!(io::stderr(), "memory-reporter: cannot save a report to {folder}: {error}");
        }
    })
}

fn run(trigger: SignalTrigger, folder: &Path) -> io::Result<()> {
    if trigger == SignalTrigger::MinimizeAndReport
        && let Err(busy) = minimize_alone()
    {
        return Err(io::Error::other(busy.to_string()));
    }
    let set = collect_alone(&CollectOptions::new().deadline(DEADLINE));
    save(&set, folder)
}

fn save(set: &ReportSet, folder: &Path) -> io::Result<()> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let pid = std::process::id();
    for number in 0..1000 {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let name = |kind: &str| format!("{kind}-{seconds}-{pid}{suffix}.json.gz");
        let report = name("memory-report");
        let (path, incomplete) = (folder.join(&report), folder.join(format!("incomplete-{report}")));
        if fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        let created = match platform::create_private_file(&incomplete) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        };
        let written = file::write_compressed(created, set, file::COMPRESSION)
            .and_then(|()| fs::rename(&incomplete, &path));
        if written.is_err() {
            let _ = fs::remove_file(&incomplete);
        }
        written?;
        return dmd_dump::save(folder, &name("dmd"));
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
