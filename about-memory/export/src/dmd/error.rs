//! Why a dump or a recording does not become stacks.

use core::fmt;
use std::io;

use dmd_analyze::{AnalyzeError, Mode};

use crate::ExportError;

/// Why a dump or a recording does not become stacks.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProfileError {
    /// Two dumps of a difference have different modes.
    DifferentModes(Mode, Mode),
    /// The format cannot say an amount, or the output fails.
    Export(ExportError),
    /// The recording cannot be read.
    Read(AnalyzeError),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentModes(first, second) => {
                write!(f, "its mode is {second}, but that of the first dump is {first}")
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
