//! The blocks from before an attachment, which have no records: their number of bytes, and how many of them the program
//! has freed or moved since.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counts of older blocks.
#[derive(Debug)]
pub struct OlderBlocks {
    is_counting: AtomicBool,
    bytes: AtomicU64,
    freed: AtomicU64,
    freed_bytes: AtomicU64,
}

/// The counts of this process.
pub static OLDER_BLOCKS: OlderBlocks = OlderBlocks {
    is_counting: AtomicBool::new(false),
    bytes: AtomicU64::new(0),
    freed: AtomicU64::new(0),
    freed_bytes: AtomicU64::new(0),
};

impl OlderBlocks {
    /// Starts to count: an attachment begins. `bytes` are in use; 0 if the allocator keeps no count.
    pub fn begin(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.freed.store(0, Ordering::Relaxed);
        self.freed_bytes.store(0, Ordering::Relaxed);
        self.is_counting.store(true, Ordering::Relaxed);
    }

    /// Ends the counting: the attachment was refused.
    pub fn end(&self) {
        self.is_counting.store(false, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Whether the process has blocks from before an attachment.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.is_counting.load(Ordering::Relaxed)
    }

    /// Counts a block that the program has freed or moved, with its usable bytes.
    pub fn count_free(&self, bytes: usize) {
        self.freed.fetch_add(1, Ordering::Relaxed);
        self.freed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The number of freed blocks, and their usable bytes.
    pub fn freed(&self) -> [u64; 2] {
        [&self.freed, &self.freed_bytes].map(|count| count.load(Ordering::Relaxed))
    }

    /// The bytes that are still in use, without the headers of freed blocks; 0 if they are unknown.
    pub(crate) fn in_use(&self) -> u64 {
        // The allocator's count contains a word before each block.
        const HEADER: u64 = 8;
        let [blocks, bytes] = self.freed();
        self.bytes.load(Ordering::Relaxed).saturating_sub(bytes + blocks * HEADER)
    }
}
