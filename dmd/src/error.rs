//! Why there is no dump.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// Why a dump was not written.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// Nothing is recorded: `$DMD` is not set, or neither door is there.
    NotRunning,
    /// The file could not be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => f.write_str("DMD is not running: $DMD is not set, or no allocator is hooked"),
            Self::Write { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl core::error::Error for DumpError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NotRunning => None,
            Self::Write { source, .. } => Some(source),
        }
    }
}
