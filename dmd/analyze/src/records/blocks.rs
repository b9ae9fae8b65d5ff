//! Iterates over the blocks, stacks and frames of a dump, for programs that write other formats.

use std::borrow::Cow;

use dmd_format::Mode;

use super::BlockSums;
use crate::dump::{CallFrame, Dump, DumpBlock, DumpTime, LoadedModule};

/// An entry of a dump's list of blocks: equal blocks.
#[derive(Clone, Copy, Debug)]
pub struct BlockEntry<'d> {
    dump: &'d Dump,
    block: &'d DumpBlock,
}

impl<'d> BlockEntry<'d> {
    /// The number of blocks. In a sample by bytes, the estimated number that the sampled blocks represent.
    pub fn count(&self) -> u64 {
        self.sums().0
    }

    /// The bytes that the program requested for each block.
    pub fn requested(&self) -> u64 {
        self.block.req
    }

    /// The slop of each block: usable bytes that the program did not request.
    pub fn slop(&self) -> u64 {
        self.block.slop
    }

    /// The requested bytes of all the blocks together. In a sample by bytes, an estimate.
    pub fn all_requested(&self) -> u128 {
        self.sums().1
    }

    /// The slop of all the blocks together. In a sample by bytes, an estimate.
    pub fn all_slop(&self) -> u128 {
        self.sums().2
    }

    /// The swapped bytes and the untouched bytes of all the blocks together. Zeros if the dump does not have them: see
    /// [`Dump::check_resident`].
    pub fn all_absent(&self) -> [u128; 2] {
        let BlockSums { swapped, untouched, .. } = BlockSums::from_block(self.block);
        [swapped.unsigned_abs(), untouched.unsigned_abs()]
    }

    fn sums(&self) -> (u64, u128, u128) {
        let BlockSums { num, req, slop, .. } = BlockSums::from_block(self.block);
        (u64::try_from(num).unwrap_or(u64::MAX), req.unsigned_abs(), slop.unsigned_abs())
    }

    /// The index in [`Dump::stacks`] of the stack that allocated the blocks; `None` if the dump does not have it.
    pub fn stack(&self) -> Option<usize> {
        self.block.alloc.index()
    }

    /// How often reporters reported the blocks: 0, 1, or 2 (twice or more). `None` unless the mode is
    /// [`Mode::DarkMatter`].
    pub fn reports(&self) -> Option<usize> {
        let reports = || self.block.reps.iter().filter(|trace| trace.index().is_some()).count();
        (self.dump.mode == Mode::DarkMatter).then(reports)
    }

    /// A key for each of the two reporters of the blocks. Entries with equal keys have equal reporters.
    pub fn reporter_keys(&self) -> [(u32, Option<usize>); 2] {
        [0, 1].map(|nth| (self.block.reporters[nth], self.block.reps[nth].index()))
    }

    /// The reporter of the blocks: its path or, if the dump has no paths, the reporting function. The names of two
    /// reporters are joined by `and`. `None` if the blocks were not reported.
    pub fn reporter(&self) -> Option<Cow<'d, str>> {
        match self.reporter_names() {
            [None, _] => None,
            [Some(first), None] => Some(first.into()),
            [Some(first), Some(second)] => Some(format!("{first} and {second}").into()),
        }
    }

    /// The names of the first and the second reporter. [`reporter`](Self::reporter) joins them.
    pub fn reporter_names(&self) -> [Option<&'d str>; 2] {
        if self.reports().is_none() {
            return [None; 2];
        }
        [0, 1].map(|nth: usize| {
            let path =
                self.dump.reporters.get(self.block.reporters[nth] as usize).map(|reporter| &*reporter.path);
            if let Some(path) = path.filter(|path| !path.is_empty()) {
                return Some(path);
            }
            self.block.reps[nth].index()?;
            let frames = || self.dump.trace(self.block.reps[nth]).iter().map(|id| self.dump.frames.get(*id));
            let frame = frames().find(|frame| !frame.is_measuring()).or_else(|| frames().next())?;
            Some(frame.name())
        })
    }
}

impl Dump {
    /// All blocks, in the order of the dump.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = BlockEntry<'_>> {
        self.blocks.iter().map(|block| BlockEntry { dump: self, block })
    }

    /// The programs and libraries that were loaded; empty if the dump does not list them.
    pub fn modules(&self) -> &[LoadedModule] {
        self.modules.as_deref().unwrap_or_default()
    }

    /// The time at which DMD wrote the dump, in seconds since 1970. `None` for dumps of Firefox.
    pub fn time(&self) -> Option<u64> {
        self.time
    }

    /// The time whose blocks the dump shows.
    pub fn shown(&self) -> DumpTime {
        self.shown
    }

    /// All frames, without duplicates.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = CallFrame<'_>> {
        (0..self.frames.len()).map(|index| self.frames.at(index))
    }

    /// The stacks of the dump as indices into [`frames`](Self::frames), innermost first.
    pub fn frame_indices(&self) -> impl ExactSizeIterator<Item = impl ExactSizeIterator<Item = usize>> {
        self.traces.iter().map(|range| {
            self.calls[range.start as usize..range.end as usize].iter().map(|frame| frame.index())
        })
    }
}
