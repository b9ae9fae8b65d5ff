//! Groups of blocks over time: live bytes, allocations, sizes and life-times.

use super::clock::TickClock;
use super::replay::{BlockEnd, OLDER, ReplayObserver, ReplayedBlock};

/// The number of classes of sizes: 0, 1, 2, 3 to 4, 5 to 8, and so on.
pub const SIZE_CLASSES: usize = 66;

/// The number of classes of life-times: less than 1 µs, less than 10 µs, and so on. The last class is 100 s or more.
pub const LIFE_CLASSES: usize = 10;

/// The nanoseconds at which each class of life-times ends. The last class has no end.
pub(crate) const LIFE_LIMITS: [u64; LIFE_CLASSES - 1] = [
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
];

/// Some blocks of a recording over time: all blocks, or the blocks of a site, a type or a thread.
///
/// Bytes are usable bytes. A block that was moved or resized counts as allocated again, but its life-time continues.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageLine {
    /// The most live bytes in each step of the time.
    pub live: Vec<u64>,
    /// The number of allocations and reallocations in each step.
    pub made: Vec<u64>,
    /// The most live bytes.
    pub highest: u64,
    /// Live bytes at the peak of the whole heap.
    pub at_peak: u64,
    /// Live bytes at the end.
    pub at_end: u64,
    /// Allocations and reallocations.
    pub allocations: u64,
    /// The bytes of all allocations and reallocations.
    pub allocated: u128,
    /// Allocations that their thread freed or moved before its next allocation.
    pub temporary: u64,
    /// Allocations and reallocations by size: [class](SIZE_CLASSES) `n` ends at 2 to the power `n - 1`.
    pub sizes: Vec<u64>,
    /// Freed blocks by the time from their first allocation: see [`LIFE_CLASSES`].
    pub lives: [u64; LIFE_CLASSES],
}

impl UsageLine {
    pub(crate) fn new(steps: usize) -> Self {
        Self {
            live: vec![0; steps],
            made: vec![0; steps],
            highest: 0,
            at_peak: 0,
            at_end: 0,
            allocations: 0,
            allocated: 0,
            temporary: 0,
            sizes: vec![0; SIZE_CLASSES],
            lives: [0; LIFE_CLASSES],
        }
    }

    /// The number of freed blocks. Blocks that are older than the recording do not count.
    pub fn freed(&self) -> u64 {
        self.lives.iter().sum()
    }
}

/// The class of a size.
pub(crate) fn size_class(bytes: u64) -> usize {
    match bytes {
        0 => 0,
        1.. => bytes
            .checked_next_power_of_two()
            .map_or(SIZE_CLASSES - 1, |top| top.trailing_zeros() as usize + 1),
    }
}

/// A line during a replay.
#[derive(Debug)]
struct OpenLine {
    line: UsageLine,
    now: u64,
    /// The step of the last event.
    step: usize,
}

impl OpenLine {
    fn reach(&mut self, step: usize) {
        if step > self.step {
            self.line.live[self.step + 1..=step].fill(self.now);
            self.step = step;
        }
    }

    fn began(&mut self, step: usize, bytes: u64, size: usize, older: bool) {
        self.reach(step);
        self.now = self.now.saturating_add(bytes);
        let line = &mut self.line;
        line.live[step] = line.live[step].max(self.now);
        line.highest = line.highest.max(self.now);
        if !older {
            line.made[step] += 1;
            line.allocations += 1;
            line.allocated += u128::from(bytes);
            line.sizes[size] += 1;
        }
    }

    fn ended(&mut self, step: usize, bytes: u64, life: Option<usize>, temporary: bool) {
        self.reach(step);
        self.now = self.now.saturating_sub(bytes);
        self.line.temporary += u64::from(temporary);
        if let Some(life) = life {
            self.line.lives[life] += 1;
        }
    }
}

/// The groups to which blocks belong. Each stack has one group for each way of grouping.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineGroups {
    /// The groups of each stack: `ways` numbers for each stack. The first numbers are for blocks without a stack.
    pub(crate) of_stack: Vec<u32>,
    /// The group of each thread.
    pub(crate) of_thread: Vec<u32>,
    /// The group of blocks that are older than the recording.
    pub(crate) of_older: u32,
    pub(crate) ways: usize,
    /// The number of groups. Group 0 is the whole heap.
    pub(crate) count: usize,
}

/// Makes the lines of all groups during a replay.
#[derive(Debug)]
pub(crate) struct LineObserver {
    groups: LineGroups,
    open: Vec<OpenLine>,
    steps: usize,
    scale: f64,
    /// The ticks at which classes of life-times end.
    limits: [u64; LIFE_CLASSES - 1],
}

impl LineObserver {
    /// Makes lines of `steps` equal steps up to the tick `end`.
    pub(crate) fn new(groups: LineGroups, steps: usize, end: u64, clock: &TickClock) -> Self {
        let open = || OpenLine { line: UsageLine::new(steps), now: 0, step: 0 };
        Self {
            open: (0..groups.count).map(|_| open()).collect(),
            groups,
            steps,
            scale: steps as f64 / (end as f64 + 1.0),
            limits: LIFE_LIMITS.map(|limit| clock.span(limit)),
        }
    }

    fn step(&self, tick: u64) -> usize {
        ((tick as f64 * self.scale) as usize).min(self.steps - 1)
    }

    /// Calls `each` for every group of a block.
    #[inline]
    fn each(&mut self, block: &ReplayedBlock, mut each: impl FnMut(&mut OpenLine)) {
        let LineGroups { of_stack, of_thread, of_older, ways, .. } = &self.groups;
        each(&mut self.open[0]);
        let of_block = of_stack.get(block.stack as usize * ways..).and_then(|rest| rest.get(..*ways));
        for group in of_block.unwrap_or_default() {
            each(&mut self.open[*group as usize]);
        }
        let thread =
            if block.thread == OLDER { Some(of_older) } else { of_thread.get(block.thread as usize) };
        if let Some(group) = thread {
            each(&mut self.open[*group as usize]);
        }
    }

    /// Returns the lines by group. The replay must have reached the end.
    pub(crate) fn finish(mut self) -> Vec<UsageLine> {
        let last = self.steps - 1;
        for open in &mut self.open {
            open.reach(last);
            open.line.at_end = open.now;
        }
        self.open.into_iter().map(|open| open.line).collect()
    }

    /// Stores the live bytes of all groups as the bytes at the peak.
    pub(crate) fn at_peak(&mut self) {
        self.open.iter_mut().for_each(|open| open.line.at_peak = open.now);
    }
}

impl ReplayObserver for LineObserver {
    fn began(&mut self, tick: u64, block: &ReplayedBlock, _: bool) {
        let (step, size) = (self.step(tick), size_class(block.usable()));
        let older = block.thread == OLDER;
        self.each(block, |open| open.began(step, block.usable(), size, older));
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        let step = self.step(end.tick);
        let life = end.tick.saturating_sub(end.born);
        let known = !end.moved && block.thread != OLDER;
        let life = known.then(|| self.limits.partition_point(|limit| *limit <= life));
        self.each(block, |open| open.ended(step, block.usable(), life, end.temporary));
    }
}
