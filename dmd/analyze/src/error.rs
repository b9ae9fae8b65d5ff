//! Errors of reading and analyzing dumps.

use dmd_format::Mode;
use memory_report::ReadError;
use thiserror::Error;

/// A fault of a dump, or a request that the dump cannot answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// The file cannot be read, or is not JSON.
    #[error(transparent)]
    Read(ReadError),
    /// The file is JSON, but not an object.
    #[error("not a DMD dump: expected a JSON object")]
    NotADump,
    /// A required key is missing. The value is its place, such as `blockList[3].req`.
    #[error("{0} is missing")]
    Missing(String),
    /// A value is wrong: its place, such as `blockList[3].alloc`, and the reason.
    #[error("{0}: {1}")]
    Wrong(String, String),
    /// The version is not supported. The value is the version as the file writes it.
    #[error("version {0} is not supported (expected 5)")]
    Version(String),
    /// The mode is unknown. The value is the mode as the file writes it.
    #[error("invocation.mode: {0} is not live, dark-matter, cumulative or scan")]
    UnknownMode(String),
    /// The number of blocks, traces, frames or words exceeds
    /// [`DumpReadOptions::max_entries`](crate::DumpReadOptions::max_entries). In a recording, also the number of
    /// chunks, calls and threads, of live blocks, or of events in memory.
    #[error("more than {0} blocks, traces, frames or words")]
    TooManyEntries(usize),
    /// The sum of all sizes is too large, or an area of memory ends after the last address. The value is the place.
    #[error("{0}: the sum of the sizes is too large")]
    Overflow(String),
    /// The two dumps of a difference have different modes.
    #[error("mode {1} cannot be compared with mode {0}")]
    DifferentModes(Mode, Mode),
    /// The dump has this mode, but only dumps of scan mode have contents of blocks.
    #[error("taken in mode {0}: only dumps of scan mode have contents of blocks")]
    NotScan(Mode),
    /// The dump has this mode, but only dumps of dark-matter mode have reports.
    #[error("taken in mode {0}: only dumps of dark-matter mode have reports")]
    NotDarkMatter(Mode),
    /// The dump also contains freed blocks, and does not mark them as freed.
    #[error("taken in mode cumulative: the dump also contains freed blocks")]
    Cumulative,
    /// The dump does not have the state of the heap at its peak.
    #[error("peak: the dump does not have the state of the heap at its peak")]
    NoPeak,
    /// The dump does not have the blocks of the requested time.
    #[error("the dump does not have the blocks of that time: only a recording has the blocks of every time")]
    OneTime,
    /// The file is not a recording, or has an unknown version. The value is the reason.
    #[error("not a readable recording: {0}")]
    Recording(String),
    /// The memory of a process does not have the tables of an engine that records every block. The value is the reason.
    #[error("{0}")]
    Image(String),
    /// The window's end is before its start. Both times are in seconds: first the start, then the end.
    #[error("the window ends at {1:.2} s, before it starts at {0:.2} s")]
    Backwards(f64, f64),
    /// The recording does not reach this time. The values: the time, and the end, in seconds.
    #[error("the recording ends at {1:.2} s, before {0:.2} s; --at end shows its end")]
    AfterEnd(f64, f64),
    /// The dump has no block to clamp contents to.
    #[error("blockList: no blocks to clamp contents to")]
    NoBlocks,
    /// Two blocks, at these addresses, overlap.
    #[error("blockList: the blocks at 0x{0:x} and 0x{1:x} overlap")]
    Overlap(u64, u64),
    /// A word of a block does not point to the start of a block. The values are the address of the block, and the word.
    #[error("block 0x{0:x}: no block starts at 0x{1:x}; clamp the contents first")]
    NotClamped(u64, u64),
    /// The dump does not have the memory of the process.
    #[error("the dump has no resident bytes: only dumps that this version of DMD writes on Linux have them")]
    NoMemory,
    /// The process could not read its own memory. The value is the reason.
    #[error("the dump has no resident bytes, because the process could not read its own memory map ({0})")]
    MemoryUnreadable(String),
    /// The dump shows another time than the end, but resident bytes are known only for the end.
    #[error("the dump has the resident bytes of the end only; --at end shows the end")]
    MemoryAtEnd,
    /// The dump also contains freed blocks, without resident bytes.
    #[error("taken in mode cumulative: freed blocks have no resident bytes")]
    MemoryOfFreed,
    /// The rewritten dump could not be written, or could not replace the old dump.
    #[error("cannot be rewritten: {0}")]
    Write(#[source] std::io::Error),
}

impl From<ReadError> for AnalyzeError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotAnObject => Self::NotADump,
            error => Self::Read(error),
        }
    }
}
