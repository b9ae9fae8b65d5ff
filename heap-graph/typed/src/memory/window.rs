//! Reads many small blocks at once where they are read in order of their addresses: a system call for each would take
//! longer than the rest of the work.

use super::MemorySource;

/// The bytes of a window, and the most bytes of a read that goes through it.
const BYTES: usize = 1 << 16;
const SMALL: u64 = 1 << 12;

/// A read this far behind the one before it, or less, follows it.
const NEAR: u64 = 1 << 13;

/// The latest bytes that were read together.
#[derive(Debug, Default)]
pub(crate) struct ReadWindow {
    start: u64,
    bytes: Vec<u8>,
    /// Behind the latest read.
    next: u64,
}

impl ReadWindow {
    /// These bytes; `None` if they are to be read alone.
    pub(crate) fn read(&mut self, memory: &dyn MemorySource, address: u64, bytes: u64) -> Option<&[u8]> {
        if bytes > SMALL || !memory.is_whole() {
            return None;
        }
        let follows = address.wrapping_sub(self.next) < NEAR;
        self.next = address.wrapping_add(bytes);
        if self.range(address, bytes).is_none() && follows {
            self.bytes.resize(BYTES, 0);
            let filled = memory.read(address, &mut self.bytes);
            self.bytes.truncate(filled);
            self.start = address;
        }
        let range = self.range(address, bytes)?;
        self.bytes.get(range)
    }

    /// The place of these bytes, if the window has all of them.
    fn range(&self, address: u64, bytes: u64) -> Option<core::ops::Range<usize>> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(bytes as usize)?;
        (to <= self.bytes.len()).then_some(from..to)
    }
}
