//! The folder of all tables: which files a table has, by the names of folders and files.
//!
//! A file is `TABLE/date=DATE/service_folder=SERVICE/NAME.parquet`; earlier versions wrote `service=SERVICE`. Files with
//! other places are listed as warnings, and are not read. Only this module knows the layout.

mod live;
pub(crate) mod lock;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::day::Day;
use crate::error::FleetError;

pub(crate) use live::{INPUTS, RUNS, metadata_list};

/// The maximum number of warnings that a listing keeps.
const MAX_WARNINGS: usize = 20;

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The file.
    pub path: PathBuf,
    /// The day of the folder.
    pub day: Day,
    /// The name of the service's folder, as it is written.
    pub service_folder: String,
    /// The size in bytes.
    pub size: u64,
}

impl TableFile {
    /// The name without the ending: the id of a run, or the name that a collector or `compact` gave.
    pub fn name(&self) -> &str {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_suffix(".parquet").unwrap_or(name)
    }

    /// Whether `compact` wrote the file.
    pub fn is_compact(&self) -> bool {
        self.name().starts_with("daily-") || self.name().starts_with("hourly-")
    }
}

/// Days to read. `None` stands for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayRange {
    /// The first day.
    pub from: Option<Day>,
    /// The last day.
    pub to: Option<Day>,
}

impl DayRange {
    fn contains(&self, day: Day) -> bool {
        self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to)
    }
}

/// The files of a table, and what is wrong in its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableListing {
    /// The files to read, sorted by path. A run is in one of them only.
    pub files: Vec<TableFile>,
    /// Files that are replaced by another file: `compact` has not deleted them yet.
    pub replaced: Vec<TableFile>,
    /// Files and folders that are not read, with the reason.
    pub warnings: Vec<String>,
}

impl TableListing {
    fn warn(&mut self, path: &Path, reason: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(format!("{}: {reason}", path.display()));
        } else if self.warnings.len() == MAX_WARNINGS {
            self.warnings.push("more files are not read".to_owned());
        }
    }
}

/// The folder that contains the folders of all tables.
#[derive(Clone, Debug)]
pub struct TableFolder {
    root: PathBuf,
}

impl TableFolder {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is not a folder.
    pub fn open(root: &Path) -> Result<Self, FleetError> {
        match fs::metadata(root) {
            Ok(about) if about.is_dir() => Ok(Self { root: root.to_owned() }),
            Ok(_) => Err(FleetError::at(root, "is not a folder")),
            Err(error) => Err(FleetError::at(root, error)),
        }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lists the files of a table.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder cannot be read. A table without a folder has no files.
    pub fn list(&self, table: &str, days: &DayRange) -> Result<TableListing, FleetError> {
        let _lock = lock::listing(&self.root);
        let mut listing = TableListing::default();
        let place = self.root.join(table);
        for (day_place, name) in entries(&place)? {
            let day = match name.strip_prefix("date=").map(str::parse::<Day>) {
                Some(Ok(day)) => day,
                Some(Err(error)) => {
                    listing.warn(&day_place, &error);
                    continue;
                }
                None => {
                    listing.warn(&day_place, "is not a folder date=DATE");
                    continue;
                }
            };
            if !days.contains(day) {
                continue;
            }
            // Folders of earlier versions and of this version have the same runs of a service.
            let mut services: BTreeMap<String, Vec<TableFile>> = BTreeMap::new();
            for (service_place, name) in entries(&day_place)? {
                let folder = name.strip_prefix("service_folder=").or_else(|| name.strip_prefix("service="));
                let Some(service_folder) = folder.filter(|_| service_place.is_dir()) else {
                    listing.warn(&service_place, "is not a folder service_folder=SERVICE");
                    continue;
                };
                let files = services.entry(service_folder.to_owned()).or_default();
                for (path, name) in entries(&service_place)? {
                    // A file that is being written, or that a killed process left.
                    if name.starts_with(memory_report::new_file::INCOMPLETE) || !name.ends_with(".parquet") {
                        continue;
                    }
                    match checked_size(&path) {
                        Ok(size) => {
                            files.push(TableFile {
                                path,
                                day,
                                service_folder: service_folder.to_owned(),
                                size,
                            });
                        }
                        Err(reason) => listing.warn(&path, &reason),
                    }
                }
            }
            services.into_values().for_each(|files| live::separate(files, &mut listing));
        }
        listing.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listing)
    }
}

/// The entries of a folder, sorted by name. A missing folder has none.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, String)>, FleetError> {
    let failed = |error| FleetError::at(folder, error);
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        // A file between folders: the caller warns.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        read => read.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in read {
        let entry = entry.map_err(failed)?;
        found.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
    }
    found.sort();
    Ok(found)
}

/// The size of a Parquet file. A cut file lacks the mark at its end.
fn checked_size(path: &Path) -> Result<u64, String> {
    let mut file = fs::File::open(path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let mut end = [0; 4];
    if size < 12 {
        return Err(format!("is not read: it has only {size} bytes"));
    }
    let read = file.seek(SeekFrom::End(-4)).and_then(|_| file.read_exact(&mut end));
    read.map_err(|error| error.to_string())?;
    if end == *b"PAR1" { Ok(size) } else { Err("is not read: it is cut, or not a Parquet file".to_owned()) }
}
