//! Errors of exports and imports.

use std::io;

use thiserror::Error;

/// The reason why data cannot be written in a format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Writing to the stream failed.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// An amount exceeds the maximum of a format or of a [`StackProfile`](crate::StackProfile). The values are the name
    /// of the format, the name of the amount, the amount, and the maximum.
    #[error("{0} cannot hold {1} of {2}: numbers are exact only up to {3}")]
    TooLarge(&'static str, &'static str, i128, i128),
    /// The format has no negative amounts. The values are the name of the format, the name of the amount, and the
    /// amount.
    #[error("{0} cannot hold {1} of {2}: the format has no negative amounts")]
    Negative(&'static str, &'static str, i128),
    /// The format needs an amount that was not recorded. The values are the name of the format, and the name of the
    /// amount.
    #[error("{0} needs {1}, but the profile lacks them")]
    NotRecorded(&'static str, &'static str),
}

/// The reason why a profile cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Reading from the stream failed.
    #[error(transparent)]
    Read(io::Error),
    /// The uncompressed profile has more than this many bytes.
    #[error("the unpacked profile has more than {0} bytes")]
    TooLong(u64),
    /// The bytes at this offset of the uncompressed profile violate the format. The text is the reason.
    #[error("not a pprof profile: {1} at byte {0}")]
    Malformed(u64, &'static str),
    /// A part refers to a number that does not exist. The values are the kind of the missing part, and the number.
    #[error("the profile has no {0} {1}")]
    Dangling(&'static str, u64),
    /// The total number of samples, labels, locations, lines, functions, mappings and texts exceeds this limit.
    #[error("the profile has more than {0} samples, labels, lines and texts in total")]
    TooManyEntries(usize),
    /// The texts of functions, lines, mappings and labels have more than this many bytes in total.
    #[error("the profile's names have more than {0} bytes in total")]
    TooMuchText(u64),
    /// The stacks of the profile have more than this many frames.
    #[error("the profile's stacks have more than {0} frames")]
    TooManyFrames(usize),
    /// The profile has no amounts of memory. The text contains the names of its amounts.
    #[error(
        "the profile has no {}{names}",
        if .0.is_empty() { "sample types" } else { "amounts of memory; its sample types are " },
        names = .0
    )]
    NotOfMemory(String),
    /// The sum of the profile's amounts is too large.
    #[error(transparent)]
    Amounts(ExportError),
}
