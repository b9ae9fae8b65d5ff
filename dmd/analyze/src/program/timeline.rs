//! A recording, as data for a web page: the blocks of each stack in any part of the time.

use core::time::Duration;

use super::stack_rows::{HeapSide, MOST_ROWS, StackEntry, StackRows, stack_rows};
use super::{HeapOverview, ProgramOptions};
use crate::dump::{Dump, DumpTime, RecordingOutline};
use crate::error::AnalyzeError;
use crate::recording::{ALIVE, Recording, SliceTable};
use crate::records::{Analysis, AnalyzeOptions};

/// Limits for a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineOptions {
    slices: u64,
    rows: usize,
    cells: usize,
}

impl TimelineOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of slices into which the time is divided; at most 10,000. The bound at the peak adds one slice.
    /// Default: 200.
    #[must_use]
    pub fn slices(self, slices: u64) -> Self {
        Self { slices, ..self }
    }

    /// Sets the maximum number of rows. Smaller stacks share rows. Default: 3,000.
    #[must_use]
    pub fn rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    /// Sets the maximum number of cells. If the table would have more cells, slices become longer. Default: 1,000,000.
    #[must_use]
    pub fn cells(self, cells: usize) -> Self {
        Self { cells, ..self }
    }
}

impl Default for TimelineOptions {
    fn default() -> Self {
        Self { slices: 200, rows: MOST_ROWS, cells: 1_000_000 }
    }
}

/// The maximum number of slices.
const MOST_SLICES: u64 = 10_000;

/// The blocks of a recording by stack, and by the slices of time in which they were allocated and freed.
///
/// Slice `n` starts after bound `n - 1` and ends with bound `n`. Slice 0 is the time up to the first bound. A cell
/// contains blocks that are alive at bound `n` if its blocks began in slice `n` or before, and ended in a later slice.
/// Bytes are usable bytes, as in the flame graph. A block that was moved or resized counts as a new block.
///
/// [`TimelineOptions`] bound the table.
#[derive(Clone, Debug)]
pub struct Timeline {
    outline: RecordingOutline,
    rows: StackRows,
    sliced: SliceTable,
}

/// Figures of the whole heap in one step of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeStep {
    /// The end of the step, as the time since the start of the recording.
    pub end: Duration,
    /// The most live bytes in the step.
    pub highest: i128,
    /// Bytes that were allocated or reallocated.
    pub allocated: u128,
    /// Allocations and reallocations.
    pub allocations: u64,
}

/// The blocks of a row that share the slice in which they began, and the slice in which they ended. Amounts are
/// negative in one rare case: a move ended a block, and then the allocator could not move the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeCell {
    /// The index of the row.
    pub row: usize,
    /// The slice in which the blocks began. Blocks that are older than the recording are in slice 0.
    pub began: usize,
    /// The slice in which the blocks ended; `None` if they are alive at the end.
    pub ended: Option<usize>,
    /// Usable bytes.
    pub bytes: i128,
    /// The number of blocks.
    pub blocks: i64,
}

impl Timeline {
    /// Replays a recording twice. `symbolize` looks up the symbols of a dump that has the recording's stacks.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Recording::state_at`].
    pub fn new(
        recording: &mut Recording,
        options: &ProgramOptions,
        bounds: &TimelineOptions,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<Self, AnalyzeError> {
        let uses = recording.stack_uses()?;
        let outline = recording.outline()?;
        let mut dump = recording.stacks(uses.iter().map(|usage| usage.stack))?;
        symbolize(&mut dump);
        let has_modules = dump.has_modules();
        let of_analysis = AnalyzeOptions::new().max_frames(usize::MAX).types(true);
        let (analysis, of_blocks) = Analysis::with_block_stacks(dump, &of_analysis);
        let entry = |(usage, stack): (&crate::recording::StackUse, _)| StackEntry {
            side: 0,
            stack,
            weight: usage.highest.into(),
        };
        let entries: Vec<StackEntry> = uses.iter().zip(of_blocks).map(entry).collect();
        let (rows, of_entries) =
            stack_rows(&[HeapSide { analysis: &analysis, has_modules }], &entries, bounds.rows, options);
        let mut row_of_stack = vec![0; recording.stacks_end().max(1)];
        for (usage, row) in uses.iter().zip(of_entries) {
            if let Some(place) = row_of_stack.get_mut(usage.stack as usize) {
                *place = row;
            }
        }
        let sliced = recording.sliced(row_of_stack, bounds.slices.clamp(1, MOST_SLICES), bounds.cells)?;
        Ok(Self { outline, rows, sliced })
    }

    /// The facts of the whole recording.
    pub fn outline(&self) -> &RecordingOutline {
        &self.outline
    }

    /// The facts of the recording about the whole life of its program.
    pub fn overview(&self) -> HeapOverview {
        HeapOverview::from_outline(&self.outline, DumpTime::End)
    }

    /// The rows, with their stacks.
    pub fn rows(&self) -> &StackRows {
        &self.rows
    }

    /// The bounds of the slices, as times since the start of the recording. One bound is the time of the peak.
    pub fn bounds(&self) -> impl ExactSizeIterator<Item = Duration> + '_ {
        self.sliced.bounds.iter().map(|bound| Duration::from_nanos(bound.nanoseconds))
    }

    /// The index of the bound that is the time of the peak.
    pub fn peak(&self) -> usize {
        self.sliced.bounds.iter().position(|bound| bound.stays).unwrap_or(0)
    }

    /// The whole heap over time, in steps that are at most as long as slices. The first step ends at the start of the
    /// recording.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = TimeStep> + '_ {
        self.sliced.step_ends.iter().zip(&self.sliced.steps).map(|(end, step)| TimeStep {
            end: Duration::from_nanos(end.nanoseconds),
            highest: step.highest,
            allocated: step.allocated,
            allocations: step.allocations,
        })
    }

    /// The cells, sorted by row, then by slices.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = TimeCell> + '_ {
        self.sliced.cells.iter().map(|cell| TimeCell {
            row: cell.row as usize,
            began: cell.began.into(),
            ended: (cell.ended != ALIVE).then_some(cell.ended.into()),
            bytes: cell.amount.bytes,
            blocks: cell.amount.blocks,
        })
    }
}
