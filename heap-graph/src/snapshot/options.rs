//! The options of reading and writing.

/// How to read a snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Bytes of one message at most; 67,108,864 by default, as in Firefox. Only the root of a heap with millions of
    /// roots comes near. A snapshot with a longer message is rejected.
    pub max_message_bytes: u64,
    /// Unpacked bytes of the snapshot at most; 1,073,741,824 (1 GiB) by default. A longer snapshot is rejected. A
    /// graph takes about as much memory as its unpacked snapshot, and a file may unpack to a thousand times its size.
    pub max_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_message_bytes: 64 << 20, max_bytes: 1 << 30 }
    }
}

impl ReadOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`max_message_bytes`](Self::max_message_bytes).
    pub fn max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// How to write a snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Level of compression, from 0 (none) to 9 (slow); 1 by default, which compresses a heap well.
    pub compression: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { compression: 1 }
    }
}

impl WriteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`compression`](Self::compression).
    pub fn compression(mut self, level: u32) -> Self {
        self.compression = level;
        self
    }
}
