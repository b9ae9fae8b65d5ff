//! Errors of reading and analyzing dumps.

use core::fmt;

use dmd_format::Mode;
use memory_report::ReadError;

/// A fault of a dump, or a request that the dump cannot answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// The file cannot be read, or is not JSON.
    Read(ReadError),
    /// The file is JSON, but not an object.
    NotADump,
    /// A required key is missing. The value is its place, such as `blockList[3].req`.
    Missing(String),
    /// A value is wrong: its place, such as `blockList[3].alloc`, and the reason.
    Wrong(String, String),
    /// The version is not supported. The value is the version as the file writes it.
    Version(String),
    /// The mode is unknown. The value is the mode as the file writes it.
    UnknownMode(String),
    /// The number of blocks, traces, frames or words exceeds
    /// [`DumpReadOptions::max_entries`](crate::DumpReadOptions::max_entries).
    TooManyEntries(usize),
    /// The sum of all sizes exceeds 127 bits.
    Overflow(String),
    /// The two dumps of a difference have different modes.
    DifferentModes(Mode, Mode),
    /// The dump has this mode, but only dumps of scan mode have contents of blocks.
    NotScan(Mode),
    /// The dump has this mode, but only dumps of dark-matter mode have reports.
    NotDarkMatter(Mode),
    /// The dump also contains freed blocks, and does not mark them as freed.
    Cumulative,
    /// The dump does not have the state of the heap at its peak.
    NoPeak,
    /// The dump does not have the blocks of the requested time.
    OneTime,
    /// The file is not a recording, or has an unknown version. The value is the reason.
    Recording(String),
    /// The memory of a process does not have the tables of an engine that records every block. The value is the reason.
    Image(String),
    /// The window's end is before its start. Both times are in seconds: first the start, then the end.
    Backwards(f64, f64),
    /// The recording does not reach this time. The values: the time, and the end, in seconds.
    AfterEnd(f64, f64),
    /// The dump has no block to clamp contents to.
    NoBlocks,
    /// Two blocks, at these addresses, overlap.
    Overlap(u64, u64),
    /// A word of a block does not point to the start of a block. The values are the address of the block, and the word.
    NotClamped(u64, u64),
    /// The dump does not have the memory of the process.
    NoMemory,
    /// The process could not read its own memory. The value is the reason.
    MemoryUnreadable(String),
    /// The dump has the resident bytes of its blocks at the end only.
    MemoryAtEnd,
    /// The dump also contains freed blocks, without resident bytes.
    MemoryOfFreed,
    /// The rewritten dump could not replace the old one.
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
            Self::Overflow(place) => write!(f, "{place}: the sum of the sizes is too large"),
            Self::DifferentModes(a, b) => write!(f, "mode {b} cannot be compared with mode {a}"),
            Self::NotScan(mode) => {
                write!(f, "taken in mode {mode}: only dumps of scan mode have contents of blocks")
            }
            Self::NotDarkMatter(mode) => {
                write!(f, "taken in mode {mode}: only dumps of dark-matter mode have reports")
            }
            Self::Cumulative => f.write_str("taken in mode cumulative: the dump also contains freed blocks"),
            Self::NoPeak => f.write_str("peak: the dump does not have the state of the heap at its peak"),
            Self::OneTime => f.write_str(
                "the dump does not have the blocks of that time: only a recording has the blocks of every time",
            ),
            Self::Image(reason) => f.write_str(reason),
            Self::Recording(reason) => write!(f, "not a readable recording: {reason}"),
            Self::Backwards(first, second) => {
                write!(f, "the window ends at {second:.2} s, before it starts at {first:.2} s")
            }
            Self::AfterEnd(time, end) => {
                write!(f, "the recording ends at {end:.2} s, before {time:.2} s; --at end shows its end")
            }
            Self::NoBlocks => f.write_str("blockList: no blocks to clamp contents to"),
            Self::Overlap(a, b) => write!(f, "blockList: the blocks at 0x{a:x} and 0x{b:x} overlap"),
            Self::NotClamped(block, word) => {
                write!(f, "block 0x{block:x}: no block starts at 0x{word:x}; clamp the contents first")
            }
            Self::NoMemory => f.write_str(
                "the dump has no resident bytes: only dumps that this version of DMD writes on Linux have them",
            ),
            Self::MemoryUnreadable(reason) => write!(
                f,
                "the dump has no resident bytes, because the process could not read its own memory map ({reason})"
            ),
            Self::MemoryAtEnd => {
                f.write_str("the dump has the resident bytes of the end only; --at end shows the end")
            }
            Self::MemoryOfFreed => {
                f.write_str("taken in mode cumulative: freed blocks have no resident bytes")
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
