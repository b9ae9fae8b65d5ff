//! The changes of the heap in order of time, for formats that contain a history.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use super::player::{RecordingPlayer, ReplayEnd};
use super::replay::{BlockEnd, OLDER, ReplayObserver, ReplayedBlock};
use crate::error::AnalyzeError;

/// A block begins or ends. For a moved or resized block, one block ends and another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockChange {
    /// The time since the start of the recording.
    pub time: Duration,
    /// Whether the block ends.
    pub is_end: bool,
    /// The time when the block began. For a block that begins now, `since` equals `time` except in one case: the
    /// allocator could not move or resize a block. Then the old block continues, and `since` is its earlier time.
    pub since: Duration,
    /// The number of the stack that allocated, moved or resized the block, as in
    /// [`Recording::stacks`](super::Recording::stacks).
    pub stack: u32,
    /// The number of the thread that allocated, moved or resized the block, as in
    /// [`Recording::thread_name`](super::Recording::thread_name). `None` for a block that is older than the recording.
    pub thread: Option<u32>,
    /// The bytes that the program requested.
    pub requested: u64,
    /// The usable bytes beyond the requested bytes.
    pub slop: u64,
}

/// The blocks whose changes count.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChangeFilter {
    All,
    /// Blocks that began after this tick. `None` means the start of the recording.
    After(Option<u64>),
}

/// The changes that the next event makes, each with its tick.
#[derive(Debug)]
pub(super) struct PendingChanges {
    which: ChangeFilter,
    changes: VecDeque<(u64, ReplayedBlock, bool)>,
}

impl PendingChanges {
    fn keeps(&self, block: &ReplayedBlock) -> bool {
        match self.which {
            ChangeFilter::All => true,
            ChangeFilter::After(tick) => block.thread != OLDER && tick.is_none_or(|tick| block.since > tick),
        }
    }
}

impl ReplayObserver for PendingChanges {
    fn began(&mut self, tick: u64, block: &ReplayedBlock, _: bool) {
        if self.keeps(block) {
            self.changes.push_back((tick, *block, false));
        }
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        if self.keeps(block) {
            self.changes.push_back((end.tick, *block, true));
        }
    }
}

/// Iterates over the changes of a recording. The iterator ends after an error.
pub struct BlockChanges<'r> {
    player: RecordingPlayer<'r>,
    until: ReplayEnd,
    next: PendingChanges,
    is_over: bool,
}

impl<'r> BlockChanges<'r> {
    /// Starts an iteration. `player` starts the replay with the blocks that are older than the recording.
    pub(super) fn new<F>(which: ChangeFilter, until: ReplayEnd, player: F) -> Result<Self, AnalyzeError>
    where
        F: FnOnce(&mut PendingChanges) -> Result<RecordingPlayer<'r>, AnalyzeError>,
    {
        let mut next = PendingChanges { which, changes: VecDeque::new() };
        Ok(Self { player: player(&mut next)?, until, next, is_over: false })
    }
}

impl fmt::Debug for BlockChanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Iterator for BlockChanges<'_> {
    type Item = Result<BlockChange, AnalyzeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next.changes.is_empty() && !self.is_over {
            match self.player.step(self.until, &mut self.next) {
                Ok(goes_on) => self.is_over = !goes_on,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        let (tick, block, is_end) = self.next.changes.pop_front()?;
        let clock = self.player.clock;
        Some(Ok(BlockChange {
            time: clock.time(tick),
            is_end,
            since: clock.time(block.since),
            stack: block.stack,
            thread: (block.thread != OLDER).then_some(block.thread),
            requested: block.requested,
            slop: block.slop,
        }))
    }
}
