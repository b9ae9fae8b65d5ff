//! The errors of writing a dump.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a dump was not written.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// DMD records nothing. For example, `$DMD` is not set, the process has neither `Dmd` nor `libdmd.so`, or DMD waits
    /// for a request.
    NotRunning,
    /// The file was not written. For example, another dump is being written.
    Write {
        /// The path of that file.
        path: PathBuf,
        /// The system's error.
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
