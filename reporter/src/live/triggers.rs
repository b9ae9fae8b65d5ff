//! Reports saved at a signal, under Firefox's names.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::collect::CollectOptions;
use crate::error::ListenError;
use crate::report_set::ReportSet;
use crate::{file, platform};

use super::dmd_dump;
use super::serve::{self, collect_alone};

/// What is asked for from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has signals")]
pub(crate) enum Trigger {
    /// To save a report.
    Report,
    /// To minimize memory usage and then to save a report.
    MinimizeAndReport,
}

/// Saves a report to `folder` whenever the signal SIGRTMIN comes in, and minimizes memory usage
/// first when it is SIGRTMIN + 1, until the program ends.
///
/// A file is called `memory-report-<seconds since 1970>-<pid>.json.gz`, with a number added if there is
/// one already. It is readable by this user only, and has `incomplete-` before its name until
/// it is whole. If DMD records the process there is also `dmd-<the same>.json.gz`. What goes wrong is told in a line on stderr, since there is nobody else to tell.
///
/// The handler only writes a byte to a pipe; a thread does the work, and the child of a fork ignores
/// both signals.
///
/// # Errors
///
/// If `folder` is not a folder, if one of the signals has a handler already, if there can be no
/// pipe or no thread, or on a system without such signals.
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

fn run(trigger: Trigger, folder: &Path) -> io::Result<()> {
    if trigger == Trigger::MinimizeAndReport
        && let Err(busy) = serve::minimize_alone()
    {
        return Err(io::Error::other(busy.to_string()));
    }
    let set = collect_alone(&CollectOptions::new().deadline(serve::DEADLINE));
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
        let written = write(created, set).and_then(|()| fs::rename(&incomplete, &path));
        if written.is_err() {
            let _ = fs::remove_file(&incomplete);
        }
        written?;
        return dmd_dump::save(folder, &name("dmd"));
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn write(created: fs::File, set: &ReportSet) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, GzEncoder::new(created, Compression::default()));
    file::write_to(&mut to, set)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}
