//! Reads memory with bounds, because damaged tables may contain cycles.

use core::cell::Cell;

use crate::error::AnalyzeError;

/// The maximum number of bytes in all reads together: the maximum size of the engine's tables.
const BUDGET: u64 = 16 << 30;

pub(super) struct ImageMemory<'m> {
    read: &'m dyn Fn(u64, &mut [u8]) -> usize,
    left: Cell<u64>,
}

impl<'m> ImageMemory<'m> {
    pub(super) fn new(read: &'m dyn Fn(u64, &mut [u8]) -> usize) -> Self {
        Self { read, left: Cell::new(BUDGET) }
    }

    /// Reads up to `into.len()` bytes. Returns the number of bytes that it read.
    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> Result<usize, AnalyzeError> {
        let left = self.left.get().checked_sub(into.len() as u64);
        let Some(left) = left else { return Err(damaged("the tables contain a cycle")) };
        self.left.set(left);
        Ok((self.read)(address, into).min(into.len()))
    }

    /// Fills the whole of `into`, or fails.
    pub(super) fn fill(&self, address: u64, into: &mut [u8]) -> Result<(), AnalyzeError> {
        match self.read(address, into)? == into.len() {
            true => Ok(()),
            false => Err(damaged(&format!("{} bytes at 0x{address:x} cannot be read", into.len()))),
        }
    }

    /// Reads words of 8 bytes.
    pub(super) fn words(&self, address: u64, count: usize) -> Result<Vec<u64>, AnalyzeError> {
        let mut bytes = vec![0; 8 * count];
        self.fill(address, &mut bytes)?;
        Ok(words(&bytes).collect())
    }
}

/// The words in some bytes. An incomplete last word is left out.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64_at(word, 0))
}

/// The word at an offset. Bytes after the end count as 0.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let from = bytes.get(at..).unwrap_or_default();
    from.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

pub(super) fn damaged(reason: &str) -> AnalyzeError {
    AnalyzeError::Image(format!("the tables of DMD are damaged: {reason}"))
}
