//! The reasons why a file of reports cannot be read.

use core::fmt;
use std::io;

/// A fault of a whole file. A single faulty report is a [`Warning`](crate::Warning) beside the good reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened or read.
    Io(io::Error),
    /// The path is a directory.
    Directory,
    /// The path is neither a file nor a directory: a pipe, a socket, a device.
    NotAFile,
    /// The file has no bytes.
    Empty,
    /// The data ends too early, after this many (decompressed) bytes.
    Truncated(u64),
    /// The file starts like a gzip file, but the decoder rejects it.
    Gzip(io::Error),
    /// The file starts like a gzip file, but this crate is built without the feature `gzip`.
    NoGzip,
    /// The gzip checksum or length differs from the decompressed data.
    Checksum,
    /// The compressed data ends before the end of the file.
    GzipTrailing,
    /// The text is not UTF-8; the field is the offset of the first invalid byte.
    NotUtf8(u64),
    /// The text is not JSON. The fields are an offset in bytes, and the text that the parser expected there.
    NotJson(u64, &'static str),
    /// The JSON is nested more than 128 levels deep; the field is the offset in bytes.
    TooDeep(u64),
    /// One value (a report or a string) has more than this many bytes.
    ValueTooLong(u64),
    /// There are more reports than [`ReadOptions::max_reports`](crate::file::ReadOptions::max_reports).
    TooManyReports(usize),
    /// The text has more bytes than [`ReadOptions::max_bytes`](crate::file::ReadOptions::max_bytes).
    TooLarge(u64),
    /// The text is JSON, but not an object.
    NotAnObject,
    /// A required key is missing.
    Missing(&'static str),
    /// A key (first field) has a value that is not of the right type (second field).
    WrongType(&'static str, &'static str),
    /// The file has another version. The field is the version as written in the file.
    Version(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => f.write_str("not found"),
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Directory => f.write_str("is a directory"),
            Self::NotAFile => f.write_str("is not a regular file"),
            Self::Empty => f.write_str("is empty: not a gzip or JSON file"),
            Self::Truncated(bytes) => write!(f, "truncated after {bytes} bytes"),
            Self::Gzip(error) => write!(f, "not a valid gzip file: {error}"),
            Self::NoGzip => {
                f.write_str("is compressed: build this program with the feature `gzip` of memory-report")
            }
            Self::Checksum => f.write_str("gzip checksum mismatch"),
            Self::GzipTrailing => f.write_str("trailing garbage after the compressed data"),
            Self::NotUtf8(at) => write!(f, "invalid UTF-8 at byte {at}"),
            Self::NotJson(at, expected) => write!(f, "not JSON: expected {expected} at byte {at}"),
            Self::TooDeep(at) => write!(f, "nested more than 128 levels deep at byte {at}"),
            Self::ValueTooLong(limit) => write!(f, "one value is longer than {limit} bytes"),
            Self::TooManyReports(limit) => write!(f, "more than {limit} reports"),
            Self::TooLarge(limit) => write!(f, "contains more than {limit} bytes of text"),
            Self::NotAnObject => f.write_str("not a memory report: expected a JSON object"),
            Self::Missing(key) => write!(f, "{key} is missing"),
            Self::WrongType(key, expected) => write!(f, "{key} is not {expected}"),
            Self::Version(found) => write!(f, "version {found} is not supported (expected 1)"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) | Self::Gzip(error) => Some(error),
            _ => None,
        }
    }
}
