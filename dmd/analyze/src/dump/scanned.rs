//! Iterates over the blocks of a scan dump, for analyses that follow the pointers in them.

use dmd_format::Mode;

use super::Dump;
use crate::error::AnalyzeError;

/// A block of a dump of scan mode.
#[derive(Clone, Copy, Debug)]
pub struct ScannedBlock<'d> {
    dump: &'d Dump,
    index: usize,
}

impl<'d> ScannedBlock<'d> {
    /// The address of its start.
    pub fn address(self) -> u64 {
        self.dump.scanned[self.index].addr
    }

    /// Requested bytes.
    pub fn requested(self) -> u64 {
        self.dump.blocks[self.index].req
    }

    /// Usable bytes: requested bytes and slop.
    pub fn usable(self) -> u64 {
        let block = &self.dump.blocks[self.index];
        block.req.saturating_add(block.slop)
    }

    /// The contents in words of 8 bytes; empty if the dump was read without contents.
    pub fn words(self) -> &'d [u64] {
        &self.dump.words[self.dump.scanned[self.index].words.clone()]
    }

    /// The index in [`Dump::stacks`] of the stack that allocated the block; `None` if DMD did not record it.
    pub fn stack(self) -> Option<usize> {
        self.dump.blocks[self.index].alloc.index()
    }

    /// The innermost frame outside of allocators, on the stack that allocated the block. If all frames are an
    /// allocator's, the innermost frame. The text has no number. `None` if DMD did not record the stack.
    pub fn allocated_in(self) -> Option<&'d str> {
        let frames = self.dump.trace(self.dump.blocks[self.index].alloc);
        let texts = || frames.iter().map(|frame| self.dump.frames.text(*frame));
        let text = texts().find(|text| !text.frame().is_of_allocator()).or_else(|| texts().next())?;
        Some(text.without_number())
    }
}

impl Dump {
    /// The blocks of a dump of scan mode, in the dump's order.
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is not scan.
    pub fn scanned_blocks(&self) -> Result<impl ExactSizeIterator<Item = ScannedBlock<'_>>, AnalyzeError> {
        if self.mode != Mode::Scan {
            return Err(AnalyzeError::NotScan(self.mode));
        }
        Ok((0..self.scanned.len()).map(|index| ScannedBlock { dump: self, index }))
    }
}
