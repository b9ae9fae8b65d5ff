//! The contents of blocks in a scan dump.

use dmd_analyze::{Dump, ScannedBlock};

use super::MemorySource;
use crate::error::TypedError;

/// The memory of a scan dump that was read with contents. It contains only blocks.
#[derive(Debug)]
pub struct ScanMemory<'d> {
    /// The blocks, sorted by address.
    blocks: Vec<ScannedBlock<'d>>,
}

impl<'d> ScanMemory<'d> {
    /// The memory in a dump.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Dump`] if the mode of the dump is not scan.
    pub fn new(dump: &'d Dump) -> Result<Self, TypedError> {
        let mut blocks: Vec<_> = dump.scanned_blocks()?.collect();
        blocks.sort_by_key(|block| block.address());
        Ok(Self { blocks })
    }
}

impl MemorySource for ScanMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let after = self.blocks.partition_point(|block| block.address() <= address);
        let Some(block) = after.checked_sub(1).map(|index| self.blocks[index]) else { return 0 };
        let skip = address - block.address();
        let words = usize::try_from(skip / 8).ok().and_then(|first| block.words().get(first..));
        let bytes = words.unwrap_or_default().iter().flat_map(|word| word.to_le_bytes());
        let mut filled = 0;
        for (place, byte) in into.iter_mut().zip(bytes.skip((skip % 8) as usize)) {
            *place = byte;
            filled += 1;
        }
        filled
    }
}
