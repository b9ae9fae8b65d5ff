//! The changes of the heap one after the other, for formats that have a history.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use super::player::{RecordingPlayer, ReplayEnd};
use super::replay::{BlockEnd, OLDER, ReplayObserver, ReplayedBlock};
use crate::error::AnalyzeError;

/// A block begins or ends. A block that the program moves or resizes ends, and another one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockChange {
    /// The time since the start of the recording.
    pub time: Duration,
    /// Whether the block ends.
    pub is_end: bool,
    /// When the block began. For a block that begins, earlier than `time` only if the program asked to move or resize it
    /// and the allocator could not: the block goes on as it was.
    pub since: Duration,
    /// The number of the stack that allocated, moved or resized the block, as in
    /// [`Recording::stacks`](super::Recording::stacks).
    pub stack: u32,
    /// The number of the thread that did, as in [`Recording::thread_name`](super::Recording::thread_name); `None` for a
    /// block that is older than the recording.
    pub thread: Option<u32>,
    /// The bytes that the program requested.
    pub requested: u64,
    /// The bytes that the program can use beyond them.
    pub slop: u64,
}

/// The blocks whose changes count.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChangeFilter {
    All,
    /// The blocks that began after this tick or, without a tick, after the start of the recording.
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

/// Replays a recording change by change. It ends after an error.
pub struct BlockChanges<'r> {
    player: RecordingPlayer<'r>,
    until: ReplayEnd,
    next: PendingChanges,
    is_over: bool,
}

impl<'r> BlockChanges<'r> {
    /// `player` begins the replay, with the blocks that are older than the recording.
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
