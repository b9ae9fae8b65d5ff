//! The facts of a whole recording.

use core::time::Duration;

use super::peak::DumpStatistics;

/// A view shows the peak if the heap has shrunk by more than a tenth (`1 / SHRUNK`) since the peak.
const SHRUNK: u128 = 10;

/// The live blocks at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapAt {
    /// The time since the start of the recording.
    pub time: Duration,
    /// Usable bytes.
    pub bytes: u128,
    /// Requested bytes: the usable bytes without slop.
    pub requested: u128,
    /// The number of blocks.
    pub blocks: u64,
}

/// The facts of a whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RecordingOutline {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The process id.
    pub process: u64,
    /// The counts until the end.
    pub statistics: DumpStatistics,
    /// The live blocks at the peak of usable bytes.
    pub peak: HeapAt,
    /// The live blocks at the end of the recording.
    pub end: HeapAt,
    /// The blocks that were alive when the recording started, if the engine knew them.
    pub older: HeapAt,
    /// The number of threads that allocated or freed.
    pub threads: usize,
    /// Whether the file is complete. False if the process was killed, or if the disk was full.
    pub is_complete: bool,
    /// Whether the recording started while the program ran. If so, the recording does not contain the blocks that the
    /// program allocated before the recording started.
    pub began_late: bool,
}

impl RecordingOutline {
    /// Whether the heap has shrunk by more than a tenth since its peak. Then a view shows the peak by default.
    pub fn has_shrunk(&self) -> bool {
        let Self { peak, end, .. } = self;
        end.bytes < peak.bytes - peak.bytes / SHRUNK
    }
}
