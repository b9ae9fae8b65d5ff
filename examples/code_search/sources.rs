//! Selects the source files: which files the program reads, in which order, and which it skips.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The sizes of files to read, in bytes. Larger files are rarely written by people. An empty file has no text, or is
/// not a real file (as in `/proc`).
const FILE_SIZES: RangeInclusive<u64> = 1..=1 << 20;

/// The limits of the reading.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The maximum number of files to list.
    pub(crate) files: usize,
    /// The maximum number of bytes of text to keep.
    pub(crate) bytes: u64,
}

/// A directory to search.
#[derive(Debug)]
pub(crate) struct Root {
    directory: PathBuf,
    /// The name of the directory in displayed paths.
    shown_as: PathBuf,
}

/// A file to read.
#[derive(Debug)]
pub(crate) struct SourceFile {
    path: PathBuf,
    /// The displayed path.
    pub(crate) shown_as: PathBuf,
}

/// The directory of the command line. By default, this workspace and the crates that cargo fetched.
pub(crate) fn roots(directory: Option<&Path>) -> anyhow::Result<Vec<Root>> {
    if let Some(directory) = directory {
        return Ok(vec![Root { directory: directory.into(), shown_as: directory.into() }]);
    }
    let mut roots = vec![workspace()?];
    // `registries` contains one directory for each registry. It does not exist before cargo fetches the first crate.
    if let Some(registries) = cargo_home().map(|home| home.join("registry").join("src"))
        && let Ok(registries) = sorted_entries(&registries)
    {
        roots.extend(registries.into_iter().map(|registry| Root::unnamed(registry.path())));
    }
    Ok(roots)
}

/// The files below the roots, sorted within each directory.
pub(crate) fn list(roots: &[Root], limits: &Limits) -> anyhow::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for Root { directory, shown_as } in roots {
        let entries =
            sorted_entries(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        list_entries(entries, shown_as, limits, &mut files);
    }
    Ok(files)
}

/// The text of a file; `None` if the file cannot be read or is not text.
pub(crate) fn read(file: &SourceFile) -> Option<String> {
    let mut text = String::from_utf8(fs::read(&file.path).ok()?).ok()?;
    text.shrink_to_fit();
    (!text.contains('\0')).then_some(text)
}

impl Root {
    fn unnamed(directory: PathBuf) -> Self {
        Self { directory, shown_as: PathBuf::new() }
    }
}

/// The workspace in which cargo built this example, or the current directory if the workspace has moved.
fn workspace() -> io::Result<Root> {
    match Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
        Some(workspace) if workspace.is_dir() => Ok(Root::unnamed(workspace.into())),
        _ => std::env::current_dir().map(Root::unnamed),
    }
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

fn sorted_entries(directory: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

fn list_entries(entries: Vec<DirEntry>, shown_as: &Path, limits: &Limits, files: &mut Vec<SourceFile>) {
    for entry in entries {
        let name = entry.file_name();
        // Symbolic links are not followed: their targets are files that are read anyway, or files outside of the root.
        let Ok(metadata) = entry.metadata() else { continue };
        let shown_as = shown_as.join(&name);
        if files.len() == limits.files {
            return;
        } else if metadata.is_file() && FILE_SIZES.contains(&metadata.len()) {
            files.push(SourceFile { path: entry.path(), shown_as });
        } else if metadata.is_dir()
            && !is_skipped(&name)
            && let Ok(entries) = sorted_entries(&entry.path())
        {
            list_entries(entries, &shown_as, limits, files);
        }
    }
}

/// Whether a directory is skipped: build output, and hidden directories such as `.git`.
fn is_skipped(directory: &OsStr) -> bool {
    directory == "target" || directory.as_encoded_bytes().starts_with(b".")
}
