//! Adds report files to the tables, as `about-memory export --append-to` does: the same file gets the same name.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memory_export::parquet::{self, ParquetOptions, ParquetRun};
use memory_export::{ExportError, StackProfile};
use memory_report::ReportSet;
use memory_report::file::{ReadOptions, read_with};
use memory_report::new_file::{self, Readers};

use crate::error::FleetError;

/// The values that all rows of a run share; `None` takes the value from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunFacts {
    /// The name of the service.
    pub service: Option<String>,
    /// The version of the service.
    pub version: Option<String>,
    /// The name of the machine.
    pub host: Option<String>,
    /// The time of the reports, since 1970.
    pub time: Option<Duration>,
    /// Other labels.
    pub labels: BTreeMap<String, String>,
}

/// What [`import`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The files of the table `reports`.
    pub files: Vec<PathBuf>,
    /// Files that are not reports, with the reason.
    pub skipped: Vec<String>,
}

/// The program that the files name.
const CREATOR: &str = concat!("memory-fleet ", env!("CARGO_PKG_VERSION"));

/// The maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Adds report files, and all report files in folders, to the tables.
///
/// # Errors
///
/// Returns an error if a named file is not a report, or if a table cannot be written. Files in folders that are not
/// reports are skipped.
pub fn import(root: &Path, sources: &[PathBuf], facts: &RunFacts) -> Result<Imported, FleetError> {
    let mut done = Imported::default();
    for source in sources {
        let about = fs::metadata(source).map_err(|error| FleetError::at(source, error))?;
        if about.is_dir() {
            add_folder(root, source, facts, MAX_DEPTH, &mut done)?;
        } else {
            add(root, source, facts, &mut done)?;
        }
    }
    Ok(done)
}

fn add_folder(
    root: &Path,
    folder: &Path,
    facts: &RunFacts,
    depth: usize,
    done: &mut Imported,
) -> Result<(), FleetError> {
    if depth == 0 {
        done.skipped.push(format!("{}: is too deep", folder.display()));
        return Ok(());
    }
    let entries = fs::read_dir(folder).map_err(|error| FleetError::at(folder, error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            add_folder(root, &path, facts, depth - 1, done)?;
        } else if path.is_file() && (name.ends_with(".json") || name.ends_with(".json.gz")) {
            // A pipe would wait for its writer.
            match add(root, &path, facts, done) {
                Err(error @ FleetError::File(..)) if matches!(&error, FleetError::File(at, _) if *at == path) =>
                {
                    done.skipped.push(error.to_string());
                }
                added => added?,
            }
        }
    }
    Ok(())
}

fn add(root: &Path, path: &Path, facts: &RunFacts, done: &mut Imported) -> Result<(), FleetError> {
    let set = read_with(path, &ReadOptions::new()).map_err(|error| FleetError::at(path, error))?;
    let changed = || {
        let changed = fs::metadata(path).and_then(|about| about.modified()).unwrap_or(UNIX_EPOCH);
        // A copy of the file often loses the fraction of a second, and must get the same time.
        Duration::from_secs(since_1970(changed).as_secs())
    };
    let name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let service = facts.service.clone().or_else(|| service_of(&set)).unwrap_or_else(name);
    let mut run = ParquetRun::new(service, facts.time.unwrap_or_else(changed));
    run.version.clone_from(&facts.version);
    run.host = facts.host.clone().or_else(host_name);
    run.labels.clone_from(&facts.labels);
    let run = run.with_id_from_reports(&set);
    let runs = [(run, set)];
    done.files.push(write_runs(root, &runs, |table| parquet::file_name(table, &runs[0].0))?);
    Ok(())
}

/// Writes the tables `reports` and `warnings` of some runs. `name` returns the path of a table's file below the folder.
pub(crate) fn write_runs(
    root: &Path,
    runs: &[(ParquetRun, ReportSet)],
    name: impl Fn(&str) -> String,
) -> Result<PathBuf, FleetError> {
    let options = ParquetOptions::new().created_by(CREATOR);
    let runs: Vec<(&ParquetRun, &ReportSet)> = runs.iter().map(|(run, set)| (run, set)).collect();
    if runs.iter().any(|(_, set)| !set.warnings().is_empty()) {
        put(root, &name("warnings"), |file| parquet::warnings(&runs, &options, file))?;
    }
    put(root, &name("reports"), |file| parquet::reports(&runs, &options, file))
}

/// Writes the tables `stacks` and `frames` of a profile.
pub(crate) fn write_stacks(root: &Path, run: &ParquetRun, profile: &StackProfile) -> Result<(), FleetError> {
    let options = ParquetOptions::new().created_by(CREATOR);
    // The frames come first: stacks without frames would have no names.
    put(root, &parquet::file_name("frames", run), |file| parquet::frames(run, profile, &options, file))?;
    put(root, &parquet::file_name("stacks", run), |file| parquet::stacks(run, profile, &options, file))?;
    Ok(())
}

/// Writes a file that appears when it is complete and on the disk.
fn put(
    root: &Path,
    name: &str,
    write: impl FnOnce(&mut fs::File) -> Result<(), ExportError>,
) -> Result<PathBuf, FleetError> {
    let path = root.join(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| FleetError::at(folder, error))?;
    }
    let written: Result<(), ExportError> = new_file::write(&path, Readers::Umask, |file| {
        write(&mut *file)?;
        file.flush()?;
        Ok(file.sync_data()?)
    });
    written.map_err(|error| FleetError::at(&path, error))?;
    Ok(path)
}

/// The name of the first process, without its id.
pub(crate) fn service_of(set: &ReportSet) -> Option<String> {
    let process = set.processes().find(|process| !process.is_empty())?;
    Some(process.split(" (pid ").next().unwrap_or_default().to_owned()).filter(|name| !name.is_empty())
}

pub(crate) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

pub(crate) fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
