//! The options of reading and writing.

/// The limits for reading a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotReadOptions {
    pub(crate) max_message_bytes: u64,
    pub(crate) max_bytes: u64,
}

impl Default for SnapshotReadOptions {
    fn default() -> Self {
        Self { max_message_bytes: Self::MAX_MESSAGE_BYTES, max_bytes: Self::MAX_BYTES }
    }
}

impl SnapshotReadOptions {
    /// The default of [`max_message_bytes`](Self::max_message_bytes).
    pub const MAX_MESSAGE_BYTES: u64 = 64 << 20;
    /// The default of [`max_bytes`](Self::max_bytes).
    pub const MAX_BYTES: u64 = 1 << 30;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the largest size of one message in bytes. Default: 67,108,864, as in Firefox. A snapshot with a longer
    /// message is rejected. Only the root's message in a heap with millions of roots is nearly as long.
    pub fn max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets the largest size of the unpacked snapshot in bytes. Default: 1,073,741,824 (1 GiB). A longer snapshot is
    /// rejected. A graph takes about as much memory as its unpacked snapshot, and a file may unpack to a thousand
    /// times its size.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// The options for writing a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotWriteOptions {
    pub(crate) compression: u32,
}

impl Default for SnapshotWriteOptions {
    fn default() -> Self {
        Self { compression: 1 }
    }
}

impl SnapshotWriteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the level of compression, from 0 (none) to 9 (slow). Default: 1, which compresses a heap well.
    pub fn compression(mut self, level: u32) -> Self {
        self.compression = level;
        self
    }
}
