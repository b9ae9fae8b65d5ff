//! Why a dump could not be read or analyzed.

use core::fmt;

use memory_report::ReadError;

use crate::mode::Mode;

/// What is wrong with a dump, or with what is asked of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// The file cannot be read, or is not JSON.
    Read(ReadError),
    /// It is JSON, but not an object.
    NotADump,
    /// A key that must be there is missing; its place, such as `blockList[3].req`.
    Missing(String),
    /// Something at a place, such as `blockList[3].alloc`, is wrong; and how.
    Wrong(String, String),
    /// The file's version, as written there.
    Version(String),
    /// The file's mode, as written there.
    UnknownMode(String),
    /// There are more blocks, traces, frames or words than
    /// [`ReadOptions::max_entries`](crate::ReadOptions::max_entries).
    TooManyEntries(usize),
    /// All sizes together are more than 127 bits can count.
    Overflow(String),
    /// The two dumps of a difference have different modes.
    DifferentModes(Mode, Mode),
    /// Only dumps of scan mode have contents of blocks.
    NotScan(Mode),
    /// Only dumps of dark-matter mode know what was reported.
    NotDarkMatter(Mode),
    /// There is no block to clamp contents to.
    NoBlocks,
    /// Two blocks, at these addresses, overlap.
    Overlap(u64, u64),
    /// A word of a block, by the addresses of the block and of the word, points to no block's start.
    NotClamped(u64, u64),
    /// The rewritten dump could not be put in place of the old one.
    Write(std::io::Error),
}

impl fmt::Display for AnalyzeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::NotADump => f.write_str("not a DMD dump: expected a JSON object"),
            Self::Missing(place) => write!(f, "{place} is missing"),
            Self::Wrong(place, how) => write!(f, "{place}: {how}"),
            Self::Version(found) => write!(f, "version {found} is not supported (expected 5)"),
            Self::UnknownMode(found) => {
                write!(f, "invocation.mode: {found} is not live, dark-matter, cumulative or scan")
            }
            Self::TooManyEntries(limit) => write!(f, "more than {limit} blocks, traces, frames or words"),
            Self::Overflow(place) => write!(f, "{place}: the sizes add up to more than can be counted"),
            Self::DifferentModes(a, b) => write!(f, "mode {b} cannot be compared with mode {a}"),
            Self::NotScan(mode) => write!(f, "taken in mode {mode}: only scan mode has contents of blocks"),
            Self::NotDarkMatter(mode) => {
                write!(f, "taken in mode {mode}: only dark-matter mode knows what was reported")
            }
            Self::NoBlocks => f.write_str("blockList: no blocks to clamp contents to"),
            Self::Overlap(a, b) => write!(f, "blockList: the blocks at 0x{a:x} and 0x{b:x} overlap"),
            Self::NotClamped(block, word) => {
                write!(f, "block 0x{block:x}: no block starts at 0x{word:x}; clamp the contents first")
            }
            Self::Write(error) => write!(f, "cannot be rewritten: {error}"),
        }
    }
}

impl std::error::Error for AnalyzeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ReadError> for AnalyzeError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotAnObject => Self::NotADump,
            error => Self::Read(error),
        }
    }
}
