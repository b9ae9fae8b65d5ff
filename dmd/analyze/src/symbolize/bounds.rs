//! Sections of debug information for one thread, with limits for reading.
//!
//! The author of a file may try to make the reader fail: entries may be nested without end, and each of a million
//! entries may refer to the same list of a few bytes. The libraries that read sections continue as long as reads
//! succeed. So each read is counted, and fails at the limit of reads or near the end of the thread's stack.

use std::borrow::Cow;
use std::cell::Cell;

use gimli::{EndianSlice, Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

use super::SymbolBound;
use super::name::LONGEST_NAME;

/// The allowed number of reads for each file, in addition to `READS_A_BYTE` for each byte of the file. A valid file
/// needs fewer than four reads for each byte.
const READS: u64 = 1 << 20;
const READS_A_BYTE: u64 = 8;

/// The number of further reads for each place to look up.
const READS_A_PLACE: u64 = 1 << 12;

/// The lower end of the stack that a thread may use for reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadingStack {
    lowest: usize,
}

impl ReadingStack {
    /// Allows to use the next `bytes` bytes of the current stack.
    pub(super) fn with_bytes(bytes: usize) -> Self {
        let here = 0_u8;
        Self { lowest: (&raw const here).addr().saturating_sub(bytes) }
    }
}

/// The limits for reading one file.
#[derive(Debug)]
pub(super) struct ReadingBounds {
    stack: ReadingStack,
    left: Cell<u64>,
    /// The limit that reading has exceeded; `None` if all reads stayed within the limits.
    reached: Cell<Option<SymbolBound>>,
}

impl ReadingBounds {
    pub(super) fn new(stack: ReadingStack) -> Self {
        Self { stack, left: Cell::new(READS), reached: Cell::new(None) }
    }

    /// Adds the allowed reads for a section.
    fn add_section(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_add(READS_A_BYTE.saturating_mul(bytes as u64)));
    }

    /// Adds the allowed reads for a place.
    pub(super) fn add_place(&self) {
        self.left.set(self.left.get().saturating_add(READS_A_PLACE));
    }

    /// The limit that reading has exceeded; `None` if all reads stayed within the limits.
    pub(super) fn reached(&self) -> Option<SymbolBound> {
        self.reached.get()
    }

    #[inline]
    fn count(&self, reads: u64) -> Result<()> {
        match self.left.get().checked_sub(reads) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(self.reach(SymbolBound::Work)),
        }
    }

    /// Checks the stack before the read of a number in the format ULEB128. The libraries recurse only from entry to
    /// entry, and each entry starts with such a number.
    #[inline]
    fn check_stack(&self) -> Result<()> {
        let here = 0_u8;
        if (&raw const here).addr() < self.stack.lowest {
            return Err(self.reach(SymbolBound::Nesting));
        }
        Ok(())
    }

    /// Stores the exceeded limit. Returns the error for the library that reads.
    #[cold]
    pub(super) fn reach(&self, bound: SymbolBound) -> Error {
        self.reached.set(Some(bound));
        Error::Io
    }
}

/// A section or a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundedSlice<'s> {
    bytes: EndianSlice<'s, RunTimeEndian>,
    bounds: &'s ReadingBounds,
}

impl<'s> BoundedSlice<'s> {
    /// Makes a slice of a whole section.
    pub(super) fn section(bytes: &'s [u8], endian: RunTimeEndian, bounds: &'s ReadingBounds) -> Self {
        bounds.add_section(bytes.len());
        Self { bytes: EndianSlice::new(bytes, endian), bounds }
    }

    pub(super) fn slice(&self) -> &'s [u8] {
        self.bytes.slice()
    }
}

impl Reader for BoundedSlice<'_> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> RunTimeEndian {
        self.bytes.endian()
    }

    #[inline]
    fn len(&self) -> usize {
        Reader::len(&self.bytes)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        Reader::is_empty(&self.bytes)
    }

    #[inline]
    fn empty(&mut self) {
        self.bytes.empty();
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.bytes.truncate(len)
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.offset_from(base.bytes)
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        self.bytes.offset_id()
    }

    #[inline]
    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.bytes.lookup_offset_id(id)
    }

    /// A search through 16 bytes counts as one read.
    #[inline]
    fn find(&self, byte: u8) -> Result<usize> {
        let at = Reader::find(&self.bytes, byte)?;
        self.bounds.count(at as u64 / 16)?;
        Ok(at)
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.bytes.skip(len)
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        Ok(Self { bytes: self.bytes.split(len)?, bounds: self.bounds })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.bytes.to_slice()
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        Reader::to_string(&self.bytes)
    }

    /// The text. A text that exceeds the maximum length of a name is cut to one byte more than the maximum.
    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        let all = self.bytes.slice();
        let kept = &all[..all.len().min(LONGEST_NAME + 1)];
        // The libraries keep texts, such as names of files, so the length counts as reads.
        self.bounds.count(kept.len() as u64 / 4)?;
        Ok(String::from_utf8_lossy(kept))
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.bounds.count(1)?;
        Reader::read_slice(&mut self.bytes, buffer)
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        self.bounds.count(1)?;
        self.bytes.read_u8()
    }

    #[inline]
    fn read_uleb128(&mut self) -> Result<u64> {
        self.bounds.check_stack()?;
        self.bounds.count(1)?;
        self.bytes.read_uleb128()
    }
}
