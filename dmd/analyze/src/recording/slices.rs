//! A recording as a table: for each row of stacks, the blocks by the slices of time in which they began and ended.
//!
//! The table gives the blocks that are alive at the end of a slice, and the part of these blocks that began after the
//! end of an earlier slice.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::replay::{BlockEnd, OLDER, ReplayObserver, ReplayedBlock};

/// The blocks of a row that share the slice in which they began, and the slice in which they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceCell {
    pub(crate) row: u32,
    /// The slice in which the blocks began. Blocks that are older than the recording are in slice 0.
    pub(crate) began: u16,
    /// The slice in which the blocks ended, or [`ALIVE`].
    pub(crate) ended: u16,
    pub(crate) amount: SliceAmount,
}

/// The value of [`SliceCell::ended`] for blocks that are alive at the end.
pub(crate) const ALIVE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceAmount {
    pub(crate) bytes: i128,
    pub(crate) blocks: i64,
}

/// The bound at the end of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceBound {
    pub(crate) nanoseconds: u64,
    /// The first tick after the bound.
    pub(crate) next: u64,
    /// Whether the bound is kept when slices become longer.
    pub(crate) stays: bool,
}

/// Figures of the whole heap between two bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceStep {
    /// The most live bytes.
    pub(crate) highest: i128,
    /// The bytes of the blocks that began.
    pub(crate) allocated: u128,
    pub(crate) allocations: u64,
}

/// The table during a replay.
///
/// If the table gets too many cells, its slices become longer. So its memory is bounded, and its figures stay exact.
#[derive(Debug)]
pub(crate) struct SliceObserver {
    /// The row of each stack. The first row is for blocks without a stack, and for stacks beyond the end of this list.
    rows: Vec<u32>,
    bounds: Vec<SliceBound>,
    /// The current slice of each step.
    slice_of_step: Vec<u16>,
    /// The bounds of the steps. They never change.
    step_ends: Vec<SliceBound>,
    steps: Vec<SliceStep>,
    step: usize,
    now: i128,
    cells: FxHashMap<(u32, u16, u16), SliceAmount>,
    max_cells: usize,
}

/// A finished table.
#[derive(Clone, Debug)]
pub(crate) struct SliceTable {
    /// Bound `n` is the end of slice `n`. The first bound is the start of the recording.
    pub(crate) bounds: Vec<SliceBound>,
    /// The end of each step. The first step contains everything up to the start of the recording.
    pub(crate) step_ends: Vec<SliceBound>,
    pub(crate) steps: Vec<SliceStep>,
    /// The cells, sorted by row, then by slices.
    pub(crate) cells: Vec<SliceCell>,
}

impl SliceObserver {
    /// Starts a table with these rows and bounds. `bounds` must be ascending.
    pub(crate) fn new(rows: Vec<u32>, bounds: Vec<SliceBound>, max_cells: usize) -> Self {
        Self {
            rows,
            slice_of_step: (0..bounds.len() as u16).collect(),
            steps: vec![SliceStep::default(); bounds.len()],
            step_ends: bounds.clone(),
            bounds,
            step: 0,
            now: 0,
            cells: FxHashMap::default(),
            max_cells,
        }
    }

    /// The step of a tick. Ticks after the last bound are in the last step.
    #[inline]
    fn step_of(&self, tick: u64) -> usize {
        self.step_ends.partition_point(|end| end.next <= tick).min(self.step_ends.len() - 1)
    }

    /// The slice in which a block began.
    #[inline]
    fn began_in(&self, block: &ReplayedBlock) -> u16 {
        if block.thread == OLDER { 0 } else { self.slice_of_step[self.step_of(block.since)] }
    }

    fn row(&self, block: &ReplayedBlock) -> u32 {
        self.rows.get(block.stack as usize).or(self.rows.first()).copied().unwrap_or_default()
    }

    fn add(&mut self, key: (u32, u16, u16), bytes: i128, blocks: i64) {
        let amount = self.cells.entry(key).or_default();
        amount.bytes += bytes;
        amount.blocks += blocks;
        if amount.blocks == 0 && amount.bytes == 0 {
            self.cells.remove(&key);
        } else if self.cells.len() > self.max_cells {
            self.lengthen();
        }
    }

    /// Advances to an event's step. The heap had the same size in all steps since the last event.
    #[inline]
    fn reach(&mut self, tick: u64) -> usize {
        let step = self.step_of(tick).max(self.step);
        while self.step < step {
            self.step += 1;
            self.steps[self.step].highest = self.now;
        }
        step
    }

    /// Removes every second bound, except bounds that must stay.
    fn lengthen(&mut self) {
        let last = self.bounds.len() - 1;
        let mut kept = Vec::with_capacity(last / 2 + 3);
        let mut into = Vec::with_capacity(last + 1);
        let mut odd = false;
        for (index, bound) in self.bounds.iter().enumerate() {
            into.push(kept.len() as u16);
            odd = !odd;
            if bound.stays || index == 0 || index == last || odd {
                kept.push(*bound);
            }
        }
        if kept.len() == self.bounds.len() {
            // All remaining bounds must stay. So the number of cells is bounded by these few slices and the rows.
            self.max_cells = usize::MAX;
            return;
        }
        self.bounds = kept;
        let to = |slice: u16| if slice == ALIVE { ALIVE } else { into[usize::from(slice)] };
        self.slice_of_step.iter_mut().for_each(|slice| *slice = to(*slice));
        let mut cells: FxHashMap<(u32, u16, u16), SliceAmount> = FxHashMap::default();
        // The order does not matter for sums.
        core::mem::take(&mut self.cells).into_iter().for_each(|((row, began, ended), amount)| {
            let sum = cells.entry((row, to(began), to(ended))).or_default();
            sum.bytes += amount.bytes;
            sum.blocks += amount.blocks;
        });
        self.cells = cells;
    }

    /// Returns the table, after the replay reached its end.
    pub(crate) fn finish(mut self) -> SliceTable {
        self.reach(u64::MAX);
        let cells: BTreeMap<_, _> = self.cells.into_iter().collect();
        let cell = |((row, began, ended), amount)| SliceCell { row, began, ended, amount };
        SliceTable {
            bounds: self.bounds,
            step_ends: self.step_ends,
            steps: self.steps,
            cells: cells.into_iter().map(cell).collect(),
        }
    }
}

fn usable(block: &ReplayedBlock) -> i128 {
    i128::from(block.requested) + i128::from(block.slop)
}

impl ReplayObserver for SliceObserver {
    fn began(&mut self, tick: u64, block: &ReplayedBlock, moved: bool) {
        let step = self.reach(tick);
        let (row, bytes, began) = (self.row(block), usable(block), self.began_in(block));
        self.now += bytes;
        let of_step = &mut self.steps[step];
        of_step.highest = of_step.highest.max(self.now);
        if moved && block.since < tick {
            // The move failed, so the block's end must be undone.
            let slice = self.slice_of_step[step];
            self.add((row, began, slice), -bytes, -1);
        } else if block.thread != OLDER {
            of_step.allocated += bytes.unsigned_abs();
            of_step.allocations += 1;
        }
        // `lengthen` may have changed the slice.
        let began = self.began_in(block);
        self.add((row, began, ALIVE), bytes, 1);
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        let step = self.reach(end.tick);
        let (row, bytes) = (self.row(block), usable(block));
        self.now -= bytes;
        self.add((row, self.began_in(block), ALIVE), -bytes, -1);
        let (began, ended) = (self.began_in(block), self.slice_of_step[step]);
        self.add((row, began, ended), bytes, 1);
    }
}
