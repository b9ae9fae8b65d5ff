//! The state of the heap at its peak. Dumps of the crate `dmd` have it in addition to the state at the end.

use core::time::Duration;

use super::trace_id::DumpTraceId;

/// The time whose blocks a [`Dump`](crate::Dump) shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpTime {
    /// The peak of the heap: the highest sum of usable bytes of all live blocks.
    Peak,
    /// The time at which the dump was written, or the end of the recording.
    #[default]
    End,
    /// This long after the start of the recording that the dump is from.
    Time(Duration),
    /// The blocks that the program allocated between two times, and that were still alive at the second time.
    Window(Duration, Duration),
}

/// The peak of the heap, counted over the blocks that DMD recorded.
#[derive(Clone, Debug, Default)]
pub struct DumpPeak {
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
    pub(crate) seconds: f64,
    pub(crate) within: u64,
    pub(crate) is_usable: bool,
    pub(crate) stacks: Vec<PeakStack>,
}

/// The blocks of one stack at the peak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeakStack {
    pub(crate) alloc: DumpTraceId,
    /// The number of blocks, at least 1.
    pub(crate) num: u64,
    pub(crate) bytes: u64,
}

/// The counts from the start of DMD until it wrote the dump.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DumpStatistics {
    /// Seconds since DMD started.
    pub seconds: f64,
    /// Calls that made a new block.
    pub allocations: u64,
    /// Calls that freed a block.
    pub frees: u64,
    /// Calls that changed the size of a block.
    pub reallocations: u64,
    /// Blocks that their thread freed or moved before its next allocation. heaptrack calls them temporary allocations.
    pub temporary: u64,
}

impl DumpPeak {
    /// Usable bytes of all live blocks; in older dumps requested bytes, see [`is_usable`](Self::is_usable).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the bytes are usable bytes, like the bytes of a dump's blocks. Dumps of older versions contain the
    /// requested bytes.
    pub fn is_usable(&self) -> bool {
        self.is_usable
    }

    /// The number of live blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Seconds from the start of DMD to the peak.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The maximum difference between [`bytes`](Self::bytes) and the true peak, in bytes.
    pub fn within(&self) -> u64 {
        self.within
    }
}
