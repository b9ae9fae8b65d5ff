//! Errors of exports and imports.

use core::fmt;
use std::io;

/// The reason why data cannot be written in a format.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// Writing to the stream failed.
    Write(io::Error),
    /// An amount exceeds the maximum of a format or of a [`StackProfile`](crate::StackProfile). The values are the name
    /// of the format, the name of the amount, the amount, and the maximum.
    TooLarge(&'static str, &'static str, i128, i128),
    /// The format has no negative amounts. The values are the name of the format, the name of the amount, and the
    /// amount.
    Negative(&'static str, &'static str, i128),
    /// The format needs an amount that was not recorded. The values are the name of the format, and the name of the
    /// amount.
    NotRecorded(&'static str, &'static str),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::TooLarge(who, what, amount, most) => {
                write!(f, "{who} cannot hold {what} of {amount}: numbers are exact only up to {most}")
            }
            Self::Negative(who, what, amount) => {
                write!(f, "{who} cannot hold {what} of {amount}: the format has no negative amounts")
            }
            Self::NotRecorded(who, what) => write!(f, "{who} needs {what}, but the profile lacks them"),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// The reason why a profile cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// Reading from the stream failed.
    Read(io::Error),
    /// The uncompressed profile has more than this many bytes.
    TooLong(u64),
    /// The bytes at this offset of the uncompressed profile violate the format. The text is the reason.
    Malformed(u64, &'static str),
    /// A part refers to a number that does not exist. The values are the kind of the missing part, and the number.
    Dangling(&'static str, u64),
    /// The total number of samples, labels, locations, lines, functions, mappings and texts exceeds this limit.
    TooManyEntries(usize),
    /// The texts of functions, lines, mappings and labels have more than this many bytes in total.
    TooMuchText(u64),
    /// The stacks of the profile have more than this many frames.
    TooManyFrames(usize),
    /// The profile has no amounts of memory. The text contains the names of its amounts.
    NotOfMemory(String),
    /// The sum of the profile's amounts is too large.
    Amounts(ExportError),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::TooLong(most) => write!(f, "the unpacked profile has more than {most} bytes"),
            Self::Malformed(at, what) => write!(f, "not a pprof profile: {what} at byte {at}"),
            Self::Dangling(part, number) => write!(f, "the profile has no {part} {number}"),
            Self::TooManyEntries(most) => {
                write!(f, "the profile has more than {most} samples, labels, lines and texts in total")
            }
            Self::TooMuchText(most) => write!(f, "the profile's names have more than {most} bytes in total"),
            Self::TooManyFrames(most) => write!(f, "the profile's stacks have more than {most} frames"),
            Self::NotOfMemory(names) if names.is_empty() => f.write_str("the profile has no sample types"),
            Self::NotOfMemory(names) => {
                write!(f, "the profile has no amounts of memory; its sample types are {names}")
            }
            Self::Amounts(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Amounts(error) => Some(error),
            _ => None,
        }
    }
}
