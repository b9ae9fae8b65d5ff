//! Errors: one line each, with the place.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;

/// The reason why a command failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FleetError {
    /// The arguments do not fit the tables.
    Usage(String),
    /// A file or folder cannot be read or written.
    File(PathBuf, String),
    /// DataFusion rejected or stopped a query.
    Query(Box<DataFusionError>),
    /// The output cannot be written.
    Output(io::Error),
}

impl FleetError {
    /// An error about a file or folder.
    pub fn at(path: &Path, reason: impl fmt::Display) -> Self {
        Self::File(path.to_owned(), reason.to_string())
    }
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::File(path, reason) => write!(f, "{}: {}", path.display(), one_line(reason)),
            Self::Query(error) => f.write_str(&one_line(&error.strip_backtrace())),
            Self::Output(error) => error.fmt(f),
        }
    }
}

/// Errors of DataFusion contain line breaks and backtraces.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl std::error::Error for FleetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Query(error) => Some(&**error),
            Self::Output(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DataFusionError> for FleetError {
    fn from(error: DataFusionError) -> Self {
        Self::Query(Box::new(error))
    }
}
