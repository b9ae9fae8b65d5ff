//! The facts of a whole recording.

use core::time::Duration;

use super::peak::DumpStatistics;

/// A heap that has shrunk by this part since its peak is shown at its peak.
const SHRUNK: u128 = 10;

/// The live blocks at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapAt {
    /// The time since the start of the recording.
    pub time: Duration,
    /// Requested bytes.
    pub bytes: u128,
    /// The number of blocks.
    pub blocks: u64,
}

/// The facts of a whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RecordingOutline {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The number of the process.
    pub process: u64,
    /// The counts until the end.
    pub statistics: DumpStatistics,
    /// The highest sum of requested bytes.
    pub peak: HeapAt,
    /// The end.
    pub end: HeapAt,
    /// The blocks that were alive when the recording started.
    pub older: HeapAt,
    /// The number of threads that allocated or freed.
    pub threads: usize,
    /// The file has an end. Without, the process was killed, or the disk was full.
    pub is_complete: bool,
    /// The recording began while the program ran, and the blocks from before are not in it.
    pub began_late: bool,
}

impl RecordingOutline {
    /// Whether the heap has shrunk by a tenth or more since its peak, so that a view should show the peak unless somebody
    /// asks for another time.
    pub fn has_shrunk(&self) -> bool {
        let Self { peak, end, .. } = self;
        end.bytes < peak.bytes - peak.bytes / SHRUNK
    }
}
