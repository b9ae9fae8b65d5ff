//! The blocks that are alive at the end of a recording, or at another time.

use core::time::Duration;

use rustc_hash::FxHashMap;

use super::clock::TickClock;
use super::descent::DescentObserver;
use super::replay::{BlockEnd, HeapReplay, OLDER, ReplayObserver, ReplayedBlock};
use super::usage::StackUsage;
use super::{Moment, Recording};
use crate::error::AnalyzeError;

/// The number of steps into which the time is divided, to count live blocks by the time of their allocation.
pub(crate) const STEPS: usize = 20;

/// The blocks of one stack that are alive at the end, or at another time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeakedStack {
    pub(crate) stack: u32,
    pub(crate) blocks: u64,
    /// Usable bytes.
    pub(crate) bytes: u128,
    pub(crate) requested: u128,
    /// Whether the blocks are older than the recording.
    pub(crate) older: bool,
    /// The number of allocations and reallocations of the stack, freed blocks included.
    pub(crate) allocations: u64,
    /// The times of the first and the last allocation of these blocks; `None` for older blocks.
    pub(crate) times: Option<(Duration, Duration)>,
    /// The number of blocks by the step of their allocation.
    pub(crate) steps: [u64; STEPS],
    /// The number of blocks by usable size.
    pub(crate) sizes: FxHashMap<u64, u64>,
}

/// The blocks that the program freed before a time, while the heap only shrank.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreedBefore {
    /// Usable bytes.
    pub(crate) bytes: u128,
    /// The last time at which the blocks were alive.
    pub(crate) after: Duration,
}

/// Collects the facts about leaks during a replay.
#[derive(Debug, Default)]
pub(crate) struct LeakObserver {
    pub(crate) usage: StackUsage,
    pub(crate) descent: DescentObserver,
}

impl ReplayObserver for LeakObserver {
    fn began(&mut self, tick: u64, block: &ReplayedBlock, moved: bool) {
        self.usage.began(tick, block, moved);
        self.descent.began(tick, block, moved);
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        self.usage.ended(block, end);
        self.descent.ended(block, end);
    }
}

impl Recording {
    /// The blocks that are alive at a time, and the blocks that the program freed before this time, while the heap
    /// only shrank.
    pub(crate) fn leaked(&mut self, at: Moment) -> Result<(Vec<LeakedStack>, FreedBefore), AnalyzeError> {
        if let Moment::After(_) = at {
            super::reached(at, &self.outline()?)?;
        }
        let until = self.until(at)?;
        let mut observer = LeakObserver::default();
        let replay = self.replay(until, &mut observer)?;
        let clock = &self.index.clock;
        let (bytes, tick) = observer.descent.freed();
        let freed = FreedBefore { bytes, after: clock.time(tick) };
        Ok((leaked(&replay, &observer.usage, clock, replay.now().tick), freed))
    }
}

/// The live blocks by stack, in the order of the stacks. Blocks that are older than the recording have entries of their
/// own. `end` is the last tick.
fn leaked(replay: &HeapReplay, usage: &StackUsage, clock: &TickClock, end: u64) -> Vec<LeakedStack> {
    let allocations: FxHashMap<u32, u64> =
        usage.stacks().iter().map(|usage| (usage.stack, usage.allocations)).collect();
    let mut ticks: FxHashMap<(u32, bool), (u64, u64)> = FxHashMap::default();
    let mut stacks: FxHashMap<(u32, bool), LeakedStack> = FxHashMap::default();
    for block in replay.live() {
        let ReplayedBlock { since, stack, thread, .. } = *block;
        let older = thread == OLDER;
        let leaked = stacks.entry((stack, older)).or_insert_with(|| LeakedStack {
            stack,
            older,
            allocations: allocations.get(&stack).copied().unwrap_or_default(),
            ..LeakedStack::default()
        });
        leaked.blocks += 1;
        leaked.bytes += u128::from(block.usable());
        leaked.requested += u128::from(block.requested);
        *leaked.sizes.entry(block.usable()).or_default() += 1;
        if !older {
            let step = u128::from(since) * STEPS as u128 / (u128::from(end) + 1);
            leaked.steps[(step as usize).min(STEPS - 1)] += 1;
            let ticks = ticks.entry((stack, older)).or_insert((since, since));
            *ticks = (ticks.0.min(since), ticks.1.max(since));
        }
    }
    let mut all: Vec<LeakedStack> = stacks.into_values().collect();
    for leaked in &mut all {
        let ticks = ticks.get(&(leaked.stack, leaked.older));
        leaked.times = ticks.map(|(first, last)| (clock.time(*first), clock.time(*last)));
    }
    all.sort_by_key(|leaked| (leaked.stack, leaked.older));
    all
}
