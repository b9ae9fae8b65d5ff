//! Reads many small blocks at once, if they are read in the order of their addresses. A system call for each block
//! would take longer than all other work.

use super::MemorySource;

/// The size of a window in bytes. Reads of more than `SMALL` bytes do not use the window.
const BYTES: usize = 1 << 16;
const SMALL: u64 = 1 << 12;

/// The largest distance from the end of the previous read at which a read counts as its continuation.
const NEAR: u64 = 1 << 13;

/// The bytes that were read together last.
#[derive(Debug, Default)]
pub(crate) struct ReadWindow {
    start: u64,
    bytes: Vec<u8>,
    /// The end of the last read.
    next: u64,
}

impl ReadWindow {
    /// Returns these bytes; `None` if the caller should read them separately.
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

    /// The position of these bytes in the window; `None` if the window lacks some of them.
    fn range(&self, address: u64, bytes: u64) -> Option<core::ops::Range<usize>> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(bytes as usize)?;
        (to <= self.bytes.len()).then_some(from..to)
    }
}
