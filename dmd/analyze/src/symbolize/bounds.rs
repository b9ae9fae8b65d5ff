//! Sections of debug information as they are read by one thread, and how far reading may go.
//!
//! Whoever wrote a file that a dump names may want the reader to fail: entries may be nested without end, and
//! a list that takes a few bytes may be named by each of a million entries. The libraries that read sections
//! go on as long as reading succeeds. So each read counts, and is an error where the stack ends.

use std::borrow::Cow;
use std::cell::Cell;

use gimli::{EndianSlice, Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

use super::SymbolBound;
use super::name::LONGEST_NAME;

/// Reads of a file that are allowed whatever its size is, and for each byte of it. A sound file needs less
/// than four for a byte.
const READS: u64 = 1 << 20;
const READS_A_BYTE: u64 = 8;

/// And for each place that is looked up.
const READS_A_PLACE: u64 = 1 << 12;

/// The part of its stack that a thread may read on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    lowest: usize,
}

impl Stack {
    /// From here on so many bytes.
    pub(super) fn of(bytes: usize) -> Self {
        let here = 0_u8;
        Self { lowest: (&raw const here).addr().saturating_sub(bytes) }
    }
}

/// How far reading of one file may go.
#[derive(Debug)]
pub(super) struct Bounds {
    stack: Stack,
    left: Cell<u64>,
    /// Reading went as far as it may.
    reached: Cell<Option<SymbolBound>>,
}

impl Bounds {
    pub(super) fn new(stack: Stack) -> Self {
        Self { stack, left: Cell::new(READS), reached: Cell::new(None) }
    }

    /// A section is read, too.
    fn add_section(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_add(READS_A_BYTE.saturating_mul(bytes as u64)));
    }

    /// A place is looked up.
    pub(super) fn add_place(&self) {
        self.left.set(self.left.get().saturating_add(READS_A_PLACE));
    }

    /// The bound that was reached.
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

    /// The libraries recurse from entry to entry only, and each entry starts with such a read.
    #[inline]
    fn check_stack(&self) -> Result<()> {
        let here = 0_u8;
        if (&raw const here).addr() < self.stack.lowest {
            return Err(self.reach(SymbolBound::Nesting));
        }
        Ok(())
    }

    /// What to tell whoever reads on.
    #[cold]
    pub(super) fn reach(&self, bound: SymbolBound) -> Error {
        self.reached.set(Some(bound));
        Error::Io
    }
}

/// A section, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<'s> {
    bytes: EndianSlice<'s, RunTimeEndian>,
    bounds: &'s Bounds,
}

impl<'s> Slice<'s> {
    /// A whole section.
    pub(super) fn section(bytes: &'s [u8], endian: RunTimeEndian, bounds: &'s Bounds) -> Self {
        bounds.add_section(bytes.len());
        Self { bytes: EndianSlice::new(bytes, endian), bounds }
    }

    pub(super) fn slice(&self) -> &'s [u8] {
        self.bytes.slice()
    }
}

impl Reader for Slice<'_> {
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

    /// Looking at 16 bytes costs what a read costs.
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

    /// Of what is longer than a name may be the start, a byte too long.
    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        let all = self.bytes.slice();
        let kept = &all[..all.len().min(LONGEST_NAME + 1)];
        // The libraries keep texts, such as the names of files.
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
