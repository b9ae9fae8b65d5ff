//! Which files of a folder are read while a compact file and its inputs both exist.
//!
//! A compact file lists its inputs and their runs in its metadata. An input is replaced if it is in the list, or if all
//! of its runs are: then the same run was added again after it had been compacted.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};

use super::{TableFile, TableListing};

/// The key of the metadata with the names of the files that a compact file replaces.
pub(crate) const INPUTS: &str = "memory_fleet.inputs";
/// The key of the metadata with the ids of the runs in a file.
pub(crate) const RUNS: &str = "memory_report.runs";

/// The words of a value in a file's metadata; empty if the file has no such value.
///
/// # Errors
///
/// Returns the reason why the file is not read.
pub(crate) fn metadata_list(path: &Path, keys: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file).map_err(|error| format!("is not read: {error}"))?;
    let facts = reader.metadata().file_metadata().key_value_metadata();
    let words = |key: &&str| {
        let fact = facts.into_iter().flatten().find(|fact| fact.key == **key);
        let value = fact.and_then(|fact| fact.value.as_deref()).unwrap_or_default();
        value.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    Ok(keys.iter().map(words).collect())
}

/// Adds the files of a day and service to the listing: those that are read, and those that are replaced.
pub(super) fn separate(all: Vec<TableFile>, listing: &mut TableListing) {
    // The same run in a folder of an earlier version and in one of this version: its file has the same name.
    let mut names = HashSet::new();
    let (files, again): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|file| file.is_compact() || names.insert(file.name().to_owned()));
    listing.replaced.extend(again);
    // A single file replaces nothing. So the metadata of old days is not read here.
    if files.len() < 2 || !files.iter().any(TableFile::is_compact) {
        listing.files.extend(files);
        return;
    }
    let mut replaced: HashSet<String> = HashSet::new();
    let mut compact_runs: HashSet<String> = HashSet::new();
    let mut kept = Vec::new();
    for file in files {
        if file.is_compact() {
            match metadata_list(&file.path, &[INPUTS, RUNS]).as_deref() {
                Ok([inputs, runs]) => {
                    replaced.extend(inputs.iter().cloned());
                    compact_runs.extend(runs.iter().cloned());
                }
                Ok(_) => {}
                Err(reason) => {
                    listing.warn(&file.path, reason);
                    continue;
                }
            }
        }
        kept.push(file);
    }
    for file in kept {
        let is_replaced = replaced.contains(file.name())
            || (!file.is_compact() && {
                let runs = metadata_list(&file.path, &[RUNS]).unwrap_or_default().concat();
                compact_runs.contains(file.name())
                    || (!runs.is_empty() && runs.iter().all(|run| compact_runs.contains(run)))
            });
        if is_replaced {
            listing.replaced.push(file);
        } else {
            listing.files.push(file);
        }
    }
}
