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

/// The suffixes of source code. A dump chooses the files that `source` opens, so it must not name keys or settings.
const SOURCE_SUFFIXES: &[&str] = &[
    "rs", "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inl", "ipp", "m", "mm", "s", "S", "asm", "go",
    "py", "js", "mjs", "cjs", "jsx", "ts", "tsx", "java", "kt", "scala", "swift", "zig", "d", "cs", "rb",
    "lua", "ml", "hs", "nim",
];

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
    /// Resolves the folders. Without folders, the current folder is the only one, unless it contains the home folder:
    /// programs with a window start servers there, and their user did not choose to show all of his files.
    pub(super) fn new(roots: &[PathBuf], captures: Vec<String>) -> Result<Self, Failure> {
        let current: Vec<PathBuf> =
            fs::canonicalize(".").into_iter().filter(|folder| !holds_home(folder)).collect();
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
        if self.roots.is_empty() {
            return Err("no folder is allowed, because the server was started in `/` or in the home folder: ask the user \
                        to start it with --root FOLDER"
                .to_owned());
        }
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

    /// Returns the lines of a file of source code, if the file is below an allowed folder. Hidden files and folders are
    /// no source code.
    pub(super) fn source(&self, file: &str) -> Option<String> {
        let path = self.file(file).ok()?;
        if !self.roots.iter().any(|root| path.strip_prefix(root).is_ok_and(is_source)) {
            return None;
        }
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

/// Whether a folder is `/`, the home folder, or a folder above it.
fn holds_home(folder: &Path) -> bool {
    let home = std::env::home_dir().and_then(|home| fs::canonicalize(home).ok());
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}

/// Whether a path below a root has a suffix of source code and no hidden part.
fn is_source(path: &Path) -> bool {
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    suffix.is_some_and(|suffix| SOURCE_SUFFIXES.contains(&suffix))
        && !path.iter().any(|part| part.as_encoded_bytes().starts_with(b"."))
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
