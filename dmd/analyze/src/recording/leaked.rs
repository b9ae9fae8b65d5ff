//! The blocks that are alive at the end of a recording.

use core::time::Duration;

use rustc_hash::FxHashMap;

use super::clock::TickClock;
use super::replay::{HeapReplay, OLDER, ReplayedBlock};
use super::usage::StackUsage;

/// The number of steps into which the time is divided, to count live blocks by the time of their allocation.
pub(crate) const STEPS: usize = 20;

/// The blocks of one stack that are alive at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeakedStack {
    pub(crate) stack: u32,
    pub(crate) blocks: u64,
    pub(crate) requested: u128,
    pub(crate) slop: u128,
    /// Whether the blocks are older than the recording.
    pub(crate) older: bool,
    /// The number of allocations and reallocations of the stack, freed blocks included.
    pub(crate) allocations: u64,
    /// The times of the first and the last allocation of these blocks; `None` for older blocks.
    pub(crate) times: Option<(Duration, Duration)>,
    /// The number of blocks by the step of their allocation.
    pub(crate) steps: [u64; STEPS],
    /// The number of blocks by requested size.
    pub(crate) sizes: FxHashMap<u64, u64>,
}

/// The live blocks by stack, in the order of the stacks. Blocks that are older than the recording are separate. `end`
/// is the last tick.
pub(crate) fn leaked(
    replay: &HeapReplay,
    usage: &StackUsage,
    clock: &TickClock,
    end: u64,
) -> Vec<LeakedStack> {
    let allocations: FxHashMap<u32, u64> =
        usage.stacks().iter().map(|usage| (usage.stack, usage.allocations)).collect();
    let mut ticks: FxHashMap<(u32, bool), (u64, u64)> = FxHashMap::default();
    let mut stacks: FxHashMap<(u32, bool), LeakedStack> = FxHashMap::default();
    for block in replay.live() {
        let ReplayedBlock { requested, slop, since, stack, thread, .. } = *block;
        let older = thread == OLDER;
        let leaked = stacks.entry((stack, older)).or_insert_with(|| LeakedStack {
            stack,
            older,
            allocations: allocations.get(&stack).copied().unwrap_or_default(),
            ..LeakedStack::default()
        });
        leaked.blocks += 1;
        leaked.requested += u128::from(requested);
        leaked.slop += u128::from(slop);
        *leaked.sizes.entry(requested).or_default() += 1;
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
