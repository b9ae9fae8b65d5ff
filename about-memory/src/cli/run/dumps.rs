//! Finds the dumps or the recordings that a program wrote: files with the right name that are new or changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Failure;

/// Distinguishes a file from an earlier file with the same name: its modification time and its length in bytes.
type FileIdentity = (Option<SystemTime>, u64);

pub(super) struct DumpFiles {
    folder: PathBuf,
    name: String,
    before: BTreeMap<PathBuf, FileIdentity>,
}

impl DumpFiles {
    /// Remembers which files exist before the program runs. `option` is the option that names the files. Errors contain
    /// the option.
    pub(super) fn new(option: &str, output: &Path) -> Result<Self, Failure> {
        let usage = |reason: &str| Failure::Usage(format!("{option} {}: {reason}", output.display()));
        let name = output.file_name().ok_or_else(|| usage("is not a file name"))?;
        let folder = match output.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        if folder.to_string_lossy().contains("%p") {
            return Err(usage("%p must be in the file name, not in the folder"));
        }
        if !folder.is_dir() {
            let error = anyhow::anyhow!("there is no folder {}", folder.display());
            return Err(Failure::File(output.display().to_string(), error));
        }
        let mut dumps = Self { folder, name: name.to_string_lossy().into_owned(), before: BTreeMap::new() };
        dumps.before = dumps.all();
        Ok(dumps)
    }

    /// Returns the files that are new or changed since this value was created, sorted by name.
    pub(super) fn written(&self) -> Vec<PathBuf> {
        let now = self.all().into_iter();
        now.filter(|(path, identity)| self.before.get(path) != Some(identity)).map(|(path, _)| path).collect()
    }

    /// Whether a dump belongs to the process with this id. Without `%p`, the process is taken for the first process:
    /// only dumps of other processes have a number in their names.
    pub(super) fn is_of(&self, pid: u32, dump: &Path) -> bool {
        dump.file_name().is_some_and(|name| *name == *self.name.replace("%p", &pid.to_string()))
    }

    fn all(&self) -> BTreeMap<PathBuf, FileIdentity> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return BTreeMap::new() };
        let dumps = entries.flatten().filter(|entry| self.is_dump(&entry.file_name().to_string_lossy()));
        dumps
            .filter_map(|entry| {
                let path = entry.path();
                // `fs::metadata` follows links.
                let metadata = fs::metadata(&path).ok()?;
                let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
                Some((path, (metadata.modified().ok(), metadata.len())))
            })
            .collect()
    }

    fn is_dump(&self, name: &str) -> bool {
        if let Some((head, _)) = self.name.split_once("%p") {
            return name.strip_prefix(head).is_some_and(|rest| {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                // A second number follows the process id if the first name was taken.
                let second = rest[digits..]
                    .strip_prefix('-')
                    .map_or(0, |rest| 1 + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
                [digits, digits + second]
                    .into_iter()
                    .any(|end| is_number(&rest[..end]) && self.name.replace("%p", &rest[..end]) == name)
            });
        }
        // The id of a child process is before the first dot of the name, except a dot at the start of the name.
        let dot =
            self.name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(self.name.len(), |(at, _)| at);
        let (head, tail) = self.name.split_at(dot);
        let number = name.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail)?.strip_prefix('-'));
        name == self.name || number.is_some_and(is_number)
    }
}

/// Whether the text is a process id, or a process id and a second number because the first name was taken.
fn is_number(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-').map_or(is_number(text), |(process, second)| is_number(process) && is_number(second))
}
