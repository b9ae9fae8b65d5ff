//! Events of a recording in the form that the replay needs.

use dmd_format::recording::RecordedBlock;

/// The number of a stack that was not recorded.
pub(crate) const NO_STACK: u32 = 0;

/// A stack that mapped memory, and whether it mapped files.
pub(crate) type MappingStack = (u32, bool);

/// One event. Ticks count from the start of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedEvent {
    pub(crate) tick: u64,
    /// The index of the thread among all threads of the file.
    pub(crate) thread: u32,
    pub(crate) address: u64,
    pub(crate) kind: EventKind,
}

/// The action on the block at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Begin(RecordedBlock),
    End,
    /// The block ends because it is moved. The thread's next [`Begin`](Self::Begin) is the block's new place.
    EndByMove,
    /// The move failed: the block is still at its old place.
    Back(RecordedBlock),
}
