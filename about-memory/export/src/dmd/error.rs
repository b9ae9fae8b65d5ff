//! Errors of converting a dump or a recording to stacks.

use std::io;

use dmd_analyze::{AnalyzeError, Mode};
use thiserror::Error;

use crate::ExportError;

/// The reason why a dump or a recording cannot be converted to stacks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Only one of the two dumps of a difference is cumulative. Contains the modes of both dumps.
    #[error("its mode is {1}, but the first dump has the mode {0}")]
    DifferentModes(Mode, Mode),
    /// The format cannot hold an amount, or the output failed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] AnalyzeError),
}

impl From<io::Error> for ProfileError {
    fn from(error: io::Error) -> Self {
        Self::Export(error.into())
    }
}
