//! The live blocks of each stack at two times.

use rustc_hash::FxHashMap;

use super::player::RecordingPlayer;
use super::replay::HeapReplay;
use super::{Moment, Recording};
use crate::error::AnalyzeError;

/// Live blocks at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveSums {
    pub(crate) blocks: u64,
    /// Usable bytes.
    pub(crate) bytes: u128,
}

impl LiveSums {
    pub(crate) fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

impl Recording {
    /// The live blocks of each stack at two times, in the order of the stacks.
    pub(crate) fn live_at(
        &mut self,
        from: Moment,
        to: Moment,
    ) -> Result<Vec<(u32, [LiveSums; 2])>, AnalyzeError> {
        self.check_order(from, to)?;
        let (first, second) = (self.until(from)?, self.until(to)?);
        let mut sums: FxHashMap<u32, [LiveSums; 2]> = FxHashMap::default();
        let progress = self.progress.as_mut();
        let (source, index) = (&mut self.source, &mut self.index);
        let mut player = RecordingPlayer::new(source, index, progress, self.max_entries, &mut ())?;
        player.play(first, &mut ())?;
        add(&player.replay, 0, &mut sums);
        if second != first {
            player.play(second, &mut ())?;
        }
        add(&player.replay, 1, &mut sums);
        let mut all: Vec<(u32, [LiveSums; 2])> = sums.into_iter().collect();
        all.sort_unstable_by_key(|(stack, _)| *stack);
        Ok(all)
    }
}

fn add(replay: &HeapReplay, time: usize, sums: &mut FxHashMap<u32, [LiveSums; 2]>) {
    for block in replay.live() {
        let sums = sums.entry(block.stack).or_default();
        sums[time].add(LiveSums { blocks: 1, bytes: block.usable().into() });
    }
}
