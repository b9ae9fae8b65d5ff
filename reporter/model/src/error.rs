//! Why a file of reports could not be read.

use core::fmt;
use std::io;

/// What is wrong with a whole file. A single bad report is not an error but a [`Warning`](crate::Warning) beside
/// the good ones.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened or read.
    Io(io::Error),
    /// It is a directory.
    Directory,
    /// It is neither a file nor a directory: a pipe, a socket, a device.
    NotAFile,
    /// It has no bytes.
    Empty,
    /// It ends too early, after this many (decompressed) bytes.
    Truncated(u64),
    /// It starts as gzip does, but the decoder rejects it.
    Gzip(io::Error),
    /// It starts as gzip does, and the feature `gzip` of this crate is missing.
    NoGzip,
    /// The gzip checksum or length differs from what was decompressed.
    Checksum,
    /// Something follows the end of the compressed data.
    GzipTrailing,
    /// The text is not UTF-8, at this byte.
    NotUtf8(u64),
    /// The text is not JSON: at this byte the parser expected something else, which the second field names.
    NotJson(u64, &'static str),
    /// JSON nested more than 128 levels deep, at this byte.
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
    /// The file's version, as written there.
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
                f.write_str("is compressed, and this program lacks the feature `gzip` of memory-report")
            }
            Self::Checksum => f.write_str("gzip checksum mismatch"),
            Self::GzipTrailing => f.write_str("trailing garbage after the compressed data"),
            Self::NotUtf8(at) => write!(f, "invalid UTF-8 at byte {at}"),
            Self::NotJson(at, expected) => write!(f, "not JSON: expected {expected} at byte {at}"),
            Self::TooDeep(at) => write!(f, "nested deeper than 128 at byte {at}"),
            Self::ValueTooLong(limit) => write!(f, "one value is longer than {limit} bytes"),
            Self::TooManyReports(limit) => write!(f, "more than {limit} reports"),
            Self::TooLarge(limit) => write!(f, "expands past {limit} bytes"),
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
