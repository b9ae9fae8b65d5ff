//! The folders whose files the tools may read, and the processes that they may record.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use about_memory::live;

use super::super::input::InputArgument;
use super::super::{Failure, live_input};
use super::reason::reason;

/// A source file is shown only up to this size.
const MAX_SOURCE: u64 = 4 << 20;

/// A process has this time to say its name.
const TIME_FOR_NAME: Duration = Duration::from_secs(2);

/// The files and processes that the user allowed.
pub(super) struct AllowedPlaces {
    /// Folders, without links in their paths.
    roots: Vec<PathBuf>,
    /// Patterns of process ids and names.
    captures: Vec<String>,
}

impl AllowedPlaces {
    /// Resolves the folders. Without folders, the current folder is the only one.
    pub(super) fn new(roots: &[PathBuf], captures: Vec<String>) -> Result<Self, Failure> {
        let current = [PathBuf::from(".")];
        let roots = if roots.is_empty() { &current } else { roots };
        let resolve = |root: &PathBuf| {
            let failure =
                |reason: String| Failure::File(root.display().to_string(), anyhow::Error::msg(reason));
            let resolved = fs::canonicalize(root).map_err(|error| failure(error.to_string()))?;
            if resolved.is_dir() { Ok(resolved) } else { Err(failure("is not a folder".to_owned())) }
        };
        Ok(Self { roots: roots.iter().map(resolve).collect::<Result<_, _>>()?, captures })
    }

    /// Returns the path of a regular file, without links. The error is the same for a file outside of all folders and
    /// for a missing file, so that an answer does not show which files exist elsewhere.
    pub(super) fn file(&self, path: &str) -> Result<PathBuf, String> {
        let given = Path::new(path);
        let found = self.roots.iter().find_map(|root| {
            let resolved = fs::canonicalize(root.join(given)).ok()?;
            self.roots.iter().any(|root| resolved.starts_with(root)).then_some(resolved)
        });
        let Some(found) = found else {
            return Err(format!(
                "no file below the allowed folders has this path; the folders are: {}",
                self.names().join(", ")
            ));
        };
        match fs::metadata(&found) {
            Ok(metadata) if metadata.is_file() => Ok(found),
            Ok(metadata) if metadata.is_dir() => Err("the path is a folder; name a file in it".to_owned()),
            Ok(_) => Err("the path is not a regular file".to_owned()),
            Err(error) => Err(format!("the file cannot be read: {error}")),
        }
    }

    /// Returns the lines of a program's source file, if the file is below an allowed folder.
    pub(super) fn source(&self, file: &str) -> Option<String> {
        let path = self.file(file).ok()?;
        if fs::metadata(&path).ok()?.len() > MAX_SOURCE {
            return None;
        }
        fs::read_to_string(path).ok()
    }

    /// The folders, for messages.
    pub(super) fn names(&self) -> Vec<String> {
        self.roots.iter().map(|root| root.display().to_string()).collect()
    }

    /// Whether any process may be recorded.
    pub(super) fn allows_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Fails if the user did not allow to record this process.
    pub(super) fn check_capture(&self, pid: u32, name: Option<&str>) -> Result<(), String> {
        let pid_text = pid.to_string();
        let is_allowed =
            |pattern: &String| matches(pattern, &pid_text) || name.is_some_and(|name| matches(pattern, name));
        if self.captures.iter().any(is_allowed) {
            return Ok(());
        }
        Err(format!(
            "process {pid} may not be recorded: ask the user to start the server with --allow-capture {pid}"
        ))
    }
}

/// Returns the id of a process, and its name if it listens.
pub(super) fn process(input: &InputArgument) -> Result<(u32, Option<String>), String> {
    let name = input.name();
    // A number is the id of a process here, even if a file has this name.
    let pid = match name.parse() {
        Ok(pid) => Some(pid),
        Err(_) => live_input::process_named(&name).map_err(|failure| reason(Path::new(&name), failure))?,
    };
    let pid = pid.ok_or("no listening process has this id or name")?;
    Ok((pid, live::hello(pid, TIME_FOR_NAME).ok().map(|hello| hello.name)))
}

/// Whether a pattern matches a whole text. `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
