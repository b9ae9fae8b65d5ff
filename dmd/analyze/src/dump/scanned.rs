//! Iterates over the blocks of a scan dump, for analyses that follow the pointers in them.

use dmd_format::Mode;
use hashbrown::HashSet;

use super::{BlockContents, Dump, DumpBlock, DumpTraceId};
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

    /// Whether [`Dump::add_older_blocks`] has added the block: then its requested bytes are unknown.
    pub fn is_older(self) -> bool {
        self.index >= self.dump.blocks.len() - self.dump.older
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
    /// Adds blocks that DMD did not record, by address and usable bytes: blocks from before an attachment. Blocks at
    /// the address of a recorded block are left out. Returns the number of added blocks, and their bytes.
    pub fn add_older_blocks(&mut self, older: impl IntoIterator<Item = (u64, u64)>) -> (usize, u64) {
        if self.mode != Mode::Scan {
            return (0, 0);
        }
        let recorded: HashSet<u64> = self.scanned.iter().map(|block| block.addr).collect();
        let (mut count, mut sum) = (0, 0_u64);
        for (addr, usable) in older.into_iter().filter(|(address, _)| !recorded.contains(address)) {
            self.blocks.push(DumpBlock {
                req: usable,
                slop: 0,
                num: 1,
                alloc: DumpTraceId::NONE,
                reps: [DumpTraceId::NONE; 2],
                reporters: [u32::MAX; 2],
                sampled: false,
                swapped: 0,
                untouched: 0,
                weight: 1.0,
            });
            self.scanned.push(BlockContents { addr, words: 0..0, text: None });
            (count, sum) = (count + 1, sum.saturating_add(usable));
        }
        self.older += count;
        (count, sum)
    }

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
