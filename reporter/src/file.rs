//! Reading and writing `memory-report.json` and `memory-report.json.gz`, Firefox's own format: a file
//! of ours loads in Firefox's about:memory, and one of Firefox's loads here.
//!
//! Both ways stream: memory is that of the [`ReportSet`], and a window of about 1 MiB. A file is
//! never trusted: see [`ReadOptions`] for the limits. What is wrong with one report only is a
//! [`Warning`](crate::Warning) whose subject is the place, such as `reports[12].amount`.

mod deceptive;
mod json;
mod name_patterns;
mod parse;
mod report;
mod source;
mod warning;
mod window;
mod write;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::ReadError;
use crate::platform;
use crate::report_set::ReportSet;

/// Streaming JSON for the readers of other crates of this project.
#[doc(hidden)]
pub mod __private {
    pub use super::deceptive::is_deceptive;
    pub use super::json::{Scan, Skip, Stop};
    pub use super::source::Source;
    pub use super::window::Window;
}

/// Limits when reading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The most bytes of (decompressed) text that are read. Default: 1 GiB.
    pub max_bytes: u64,
    /// The most reports, good or bad, that are read. Default: 5,000,000.
    pub max_reports: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_reports: 5_000_000 }
    }
}

impl ReadOptions {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets [`max_reports`](Self::max_reports).
    #[must_use]
    pub fn max_reports(mut self, reports: usize) -> Self {
        self.max_reports = reports;
        self
    }
}

/// Reads a file of reports, compressed or not: its first bytes tell, not its name.
///
/// # Errors
///
/// If `path` is no regular file (a pipe is never waited for), or if the file as a whole is not a
/// memory report; see [`ReadError`].
pub fn read(path: impl AsRef<Path>) -> Result<ReportSet, ReadError> {
    read_with(path, &ReadOptions::default())
}

/// As [`read`], with other limits.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<ReportSet, ReadError> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(ReadError::Io)?;
    if metadata.is_dir() {
        return Err(ReadError::Directory);
    }
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    read_from(File::open(path).map_err(ReadError::Io)?, options)
}

/// Reads reports from any stream, compressed or not, up to its end.
///
/// # Errors
///
/// As [`read`].
pub fn read_from(reader: impl Read, options: &ReadOptions) -> Result<ReportSet, ReadError> {
    parse::document(source::Source::open(reader)?, options)
}

/// Writes all reports of `set` to a file, over what was there; compressed if its name ends in `.gz`. Only this
/// user may read the file then.
///
/// Amounts that only a view computes (`heap-unclassified`) are not in it. Warnings are, under a key that
/// Firefox passes over.
///
/// # Errors
///
/// If the file cannot be made or written.
pub fn write(path: impl AsRef<Path>, set: &ReportSet) -> io::Result<()> {
    let path = path.as_ref();
    let file = platform::create_or_replace_private_file(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        let mut encoder = io::BufWriter::with_capacity(1 << 16, encoder);
        write_to(&mut encoder, set)?;
        encoder.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
        Ok(())
    } else {
        let mut file = io::BufWriter::with_capacity(1 << 16, file);
        write_to(&mut file, set)?;
        file.flush()
    }
}

/// Writes all reports of `set` as text; many small writes, so give it something buffered.
///
/// # Errors
///
/// If writing fails.
pub fn write_to(writer: impl Write, set: &ReportSet) -> io::Result<()> {
    write::document(writer, set)
}

/// What a report without a process name is about.
pub(crate) fn own_process_name() -> String {
    format!("Main Process (pid {})", std::process::id())
}
