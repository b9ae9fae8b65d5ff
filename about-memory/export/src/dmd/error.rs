//! Errors of converting a dump or a recording to stacks.

use core::fmt;
use std::io;

use dmd_analyze::{AnalyzeError, Mode};

use crate::ExportError;

/// The reason why a dump or a recording cannot be converted to stacks.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProfileError {
    /// The two dumps of a difference have different modes.
    DifferentModes(Mode, Mode),
    /// The format cannot hold an amount, or the output failed.
    Export(ExportError),
    /// The recording cannot be read.
    Read(AnalyzeError),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentModes(first, second) => {
                write!(f, "its mode is {second}, but the first dump has the mode {first}")
            }
            Self::Export(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProfileError {}

impl From<ExportError> for ProfileError {
    fn from(error: ExportError) -> Self {
        Self::Export(error)
    }
}

impl From<io::Error> for ProfileError {
    fn from(error: io::Error) -> Self {
        Self::Export(error.into())
    }
}

impl From<AnalyzeError> for ProfileError {
    fn from(error: AnalyzeError) -> Self {
        Self::Read(error)
    }
}
