//! Finds the dumps that a black box wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dmd_format::kept_dump::KeptDumpName;

use super::{Failure, word};

/// The folder of a black box, with its dumps before the program ran.
pub(super) struct KeptDumps {
    folder: PathBuf,
    before: BTreeSet<String>,
}

impl KeptDumps {
    /// Reads the words of `--black-box`. The library checks all of them when the program starts.
    pub(super) fn new(words: &str) -> Result<Self, Failure> {
        word("--black-box", Path::new(words))?;
        let folder = words.split(',').rev().find_map(|word| word.strip_prefix("dir=")).unwrap_or(".");
        let mut kept = Self { folder: folder.into(), before: BTreeSet::new() };
        kept.before = kept.names().collect();
        Ok(kept)
    }

    fn names(&self) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
    }

    /// The newest dump that is new, or the newest partial dump if there is no other.
    pub(super) fn newest(&self) -> Option<PathBuf> {
        let new = self.names().filter(|name| !self.before.contains(name));
        let newest = new
            .filter_map(|name| KeptDumpName::parse(&name))
            .max_by_key(|name| (!name.is_partial, name.milliseconds))?;
        let path = self.folder.join(newest.to_string());
        Some(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
    }
}
