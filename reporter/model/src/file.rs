//! Reads and writes `memory-report.json` and `memory-report.json.gz`, Firefox's own format. Firefox's about:memory
//! loads files of this module, and this module loads files of Firefox.
//!
//! The reader and the writer process a file piece by piece: in addition to the [`ReportSet`], each needs a buffer of at
//! most about 1 MiB, or more for a longer text in a report. The reader trusts no file: [`ReadOptions`] contains the
//! limits. A fault of a single report becomes a [`Warning`](crate::Warning). The warning's subject is the place, such
//! as `reports[12].amount`.

mod name_patterns;
mod parse;
mod report;
mod warning;
mod write;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::ReadError;
use crate::new_file::{self, Readers};
use crate::reader::TextSource;
use crate::report_set::ReportSet;

/// The limits of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    max_bytes: u64,
    max_reports: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_bytes: Self::MAX_BYTES, max_reports: 5_000_000 }
    }
}

impl ReadOptions {
    /// The default of [`max_bytes`](Self::max_bytes): 1 GiB.
    pub const MAX_BYTES: u64 = 1 << 30;

    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// The reader accepts at most this many bytes of (decompressed) text. Default: 1 GiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The reader accepts at most this many reports, good or bad. Default: 5,000,000.
    #[must_use]
    pub fn max_reports(mut self, reports: usize) -> Self {
        self.max_reports = reports;
        self
    }
}

/// Reads a file of reports. The file's first bytes, not its name, decide whether it is decompressed.
///
/// # Errors
///
/// Returns an error if `path` is not a regular file (the reader never waits for a pipe), or if the file as a whole is
/// not a memory report; see [`ReadError`].
pub fn read(path: impl AsRef<Path>) -> Result<ReportSet, ReadError> {
    read_with(path, &ReadOptions::default())
}

/// Like [`read`], with other limits.
///
/// # Errors
///
/// Returns the same errors as [`read`].
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

/// Reads reports from any stream, compressed or not, up to the end of the stream.
///
/// # Errors
///
/// Returns the same errors as [`read`].
pub fn read_from(reader: impl Read, options: &ReadOptions) -> Result<ReportSet, ReadError> {
    parse::document(TextSource::open(reader)?, options)
}

/// Writes all reports of `set` to a file, and replaces an existing file. The file is compressed if its name ends in
/// `.gz`; compression needs the feature `gzip`. On Unix only this user can read the file.
///
/// The file also contains the warnings, under a key that Firefox ignores. It does not contain amounts that a view
/// computes, such as `heap-unclassified`.
///
/// # Errors
///
/// Returns an error if the file cannot be created or written. The error is
/// [`Unsupported`](io::ErrorKind::Unsupported) if the name ends in `.gz` and this crate is built without the feature
/// `gzip`.
pub fn write(path: impl AsRef<Path>, set: &ReportSet) -> io::Result<()> {
    let path = path.as_ref();
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
    if is_compressed && cfg!(not(feature = "gzip")) {
        let lacks = "the feature `gzip` of memory-report is missing";
        return Err(io::Error::new(io::ErrorKind::Unsupported, lacks));
    }
    new_file::write(path, Readers::User, |file| {
        #[cfg(feature = "gzip")]
        if is_compressed {
            return write_compressed(file, set, COMPRESSION);
        }
        write_to(file, set)
    })
}

/// The compression level of [`write`](write()).
#[cfg(feature = "gzip")]
pub const COMPRESSION: u32 = 6;

/// Writes all reports of `set`, compressed by gzip. `level` is from 0 (no compression) to 9 (smallest output), and
/// larger levels count as 9. The level of [`write`](write()) is [`COMPRESSION`].
///
/// # Errors
///
/// Returns an error if `writer` fails.
#[cfg(feature = "gzip")]
pub fn write_compressed(mut writer: impl Write, set: &ReportSet, level: u32) -> io::Result<()> {
    compress(&mut writer, set, level)
}

/// This function is not generic, so a program contains its code only once.
#[cfg(feature = "gzip")]
fn compress(writer: &mut dyn Write, set: &ReportSet, level: u32) -> io::Result<()> {
    let mut encoder = flate2::write::GzEncoder::new(writer, flate2::Compression::new(level.min(9)));
    write::document(&mut encoder, set)?;
    encoder.finish()?;
    Ok(())
}

/// Writes all reports of `set` as text, in pieces of at least 16 KiB; the last piece may be smaller.
///
/// # Errors
///
/// Returns an error if `writer` fails.
pub fn write_to(mut writer: impl Write, set: &ReportSet) -> io::Result<()> {
    write::document(&mut writer, set)
}
