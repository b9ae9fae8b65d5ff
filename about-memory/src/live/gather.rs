//! Reports and dumps of all processes, in one new folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memory_report::{ReportSet, Warning, WarningKind, file};

use super::ask::{self, AskOptions, in_parallel};
use super::collect::collect_all;
use super::error::LiveError;
use super::listener::list;

/// At most this many dumps are written at the same time.
const DUMPS_AT_ONCE: usize = 64;

/// The files that [`gather`] saved.
#[derive(Debug)]
#[non_exhaustive]
pub struct GatheredReports {
    /// The new folder.
    pub folder: PathBuf,
    /// All reports, as saved.
    pub reports: ReportSet,
    /// The DMD dumps.
    pub dumps: Vec<PathBuf>,
}

/// Saves the reports of all listening processes, and the DMD dumps of the processes under DMD, to a new folder in
/// `within`. The folder is the first of `about-memory-1`, `about-memory-2` and so on that does not exist, and only this
/// user can read it. It contains `memory-report.json.gz`, and `dmd-<pid>.json.gz` for each dump.
///
/// # Errors
///
/// Returns an error if no process answers, or the folder or the reports cannot be written. A dump that fails becomes a
/// warning in the reports.
pub fn gather(within: &Path, options: &AskOptions) -> Result<GatheredReports, LiveError> {
    let mut reports = collect_all(options)?;
    let folder = new_folder(within).map_err(|error| LiveError::Write(within.to_owned(), error))?;
    let mut dumps = Vec::new();
    let listeners = list(options.timeout)?;
    let with_dmd: Vec<_> = listeners
        .iter()
        .filter_map(|listener| {
            Some((listener, listener.hello.as_ref().ok().filter(|hello| hello.has_dmd())?))
        })
        .collect();
    // Processes that hang take one timeout together.
    let answers = in_parallel(&with_dmd, DUMPS_AT_ONCE, |(listener, _)| {
        let path = folder.join(format!("dmd-{}.json.gz", listener.pid));
        dump(&listener.socket, &path, options).map(|()| path)
    });
    for ((listener, hello), answer) in with_dmd.iter().zip(answers) {
        match answer {
            Ok(path) => dumps.push(path),
            Err(error) => reports.warn(Warning::new(
                WarningKind::Unavailable,
                format!("{} (pid {})", hello.name, listener.pid),
                format!("no DMD dump: {error}"),
            )),
        }
    }
    let path = folder.join("memory-report.json.gz");
    file::write(&path, &reports).map_err(|error| LiveError::Write(path, error))?;
    Ok(GatheredReports { folder, reports, dumps })
}

fn dump(socket: &Path, path: &Path, options: &AskOptions) -> Result<(), LiveError> {
    let mut answer = ask::file(socket, "dmd-dump", options.timeout)?;
    let mut private = fs::OpenOptions::new();
    private.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut private, 0o600);
    let mut file = private.open(path).map_err(|error| LiveError::Write(path.to_owned(), error))?;
    match io::copy(&mut answer, &mut file) {
        Ok(_) => Ok(()),
        Err(error) => {
            // An incomplete dump is removed.
            let _ = fs::remove_file(path);
            Err(LiveError::from_transfer(error, options.timeout))
        }
    }
}

fn new_folder(within: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(within)?;
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has modes"))]
    let mut private = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    for number in 1..=u32::MAX {
        let folder = within.join(format!("about-memory-{number}"));
        match private.create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
