//! Stacks in the data of the page: over time, before and after a change, or at one time. The page reads them in
//! `heap.ts`, `timeline.ts` and `change.ts` in `ui/src/data`.
//!
//! The page computes sums, so only rows have amounts here. Times are in nanoseconds, each as the difference from the
//! previous time.

use core::time::Duration;

use dmd_analyze::program::{HeapBlocks, HeapChange, StackRows, Timeline};
use dmd_analyze::{BlockSums, ReportFault};
use serde::Serialize;

use super::columns::{NumberColumn, TextColumn};
use super::facts::HeapFacts;

/// The heap that a page shows instead of reports.
#[derive(Clone, Debug)]
pub(super) enum HeapPage {
    /// A recording.
    Timeline(Box<Timeline>),
    /// Two dumps or recordings, by name.
    Change(HeapChange, [String; 2]),
    /// A dump. The text is the resident memory of its process by owner.
    Blocks(HeapBlocks, Option<String>),
}

impl HeapPage {
    /// Returns the faults of reporters: reported pointers that do not point to the start of a live block.
    pub(super) fn faults(&self) -> &[ReportFault] {
        match self {
            Self::Blocks(blocks, _) => blocks.faults(),
            Self::Timeline(_) | Self::Change(..) => &[],
        }
    }
}

#[derive(Serialize)]
pub(super) struct HeapHeader<'a> {
    names: usize,
    frames: usize,
    rows: usize,
    /// The number of stacks that share a row named `(small)`.
    merged: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<&'a HeapFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<TimelineHeader>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeHeader<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<BlocksHeader<'a>>,
}

#[derive(Serialize)]
struct BlocksHeader<'a> {
    /// The titles of the kinds.
    kinds: Vec<&'static str>,
    /// The reporters. In the same columns, their blocks follow the blocks of the kinds.
    reporters: Vec<String>,
    estimated: bool,
    /// Whether there are columns for swapped and untouched bytes.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    resident: bool,
    /// The resident memory of the process by owner, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<&'a str>,
}

#[derive(Serialize)]
struct TimelineHeader {
    bounds: usize,
    steps: usize,
    cells: usize,
    /// The index of the bound at the time of the peak.
    peak: usize,
    /// Whether the heap has shrunk since its peak. The page then first shows the peak.
    starts_at_peak: bool,
    is_complete: bool,
    began_late: bool,
}

#[derive(Serialize)]
struct ChangeHeader<'a> {
    before: &'a str,
    after: &'a str,
    estimated: bool,
}

/// The columns to append to the columns of the reports.
type HeapColumns = Vec<(&'static str, Vec<u8>)>;

/// Returns the header and the columns.
pub(super) fn columns<'a>(heap: &'a HeapPage, facts: Option<&'a HeapFacts>) -> (HeapHeader<'a>, HeapColumns) {
    let (rows, mut columns) = match heap {
        HeapPage::Timeline(timeline) => (timeline.rows(), row_columns(timeline.rows())),
        HeapPage::Change(change, _) => (change.rows(), row_columns(change.rows())),
        HeapPage::Blocks(blocks, _) => (blocks.rows(), row_columns(blocks.rows())),
    };
    let mut header = HeapHeader {
        names: rows.names().len(),
        frames: rows.frames().len(),
        rows: rows.rows().len(),
        merged: rows.merged(),
        facts,
        timeline: None,
        change: None,
        blocks: None,
    };
    match heap {
        HeapPage::Timeline(timeline) => header.timeline = Some(add_timeline(timeline, &mut columns)),
        HeapPage::Change(change, [before, after]) => {
            add_change(change, &mut columns);
            header.change = Some(ChangeHeader { before, after, estimated: change.is_estimated() });
        }
        HeapPage::Blocks(blocks, memory) => {
            let memory = memory.as_deref();
            header.blocks = Some(BlocksHeader { memory, ..add_blocks(blocks, &mut columns) });
        }
    }
    (header, columns)
}

fn row_columns(rows: &StackRows) -> HeapColumns {
    let mut names = TextColumn::default();
    rows.names().iter().for_each(|name| names.push(name));
    let [mut children, mut name_of, mut place_of, mut frame] = [(); 4].map(|()| NumberColumn::default());
    for of_frame in rows.frames() {
        children.push(of_frame.children);
        name_of.push(of_frame.name);
        // 0 means an unknown place.
        place_of.push(of_frame.place.map_or(0, |place| place + 1));
    }
    let mut holders: [NumberColumn; 3] = Default::default();
    for row in rows.rows() {
        frame.push(row.frame);
        holders.iter_mut().zip(row.holders).for_each(|(column, holder)| column.push(holder));
    }
    let (lengths, names) = names.into_bytes();
    let [site, of_type, of_crate] = holders.map(NumberColumn::into_bytes);
    vec![
        ("heapNameLengths", lengths),
        ("heapNames", names),
        ("heapChildren", children.into_bytes()),
        ("heapNameOf", name_of.into_bytes()),
        ("heapPlaceOf", place_of.into_bytes()),
        ("heapFrame", frame.into_bytes()),
        ("heapSite", site),
        ("heapType", of_type),
        ("heapCrate", of_crate),
    ]
}

fn add_timeline(timeline: &Timeline, columns: &mut HeapColumns) -> TimelineHeader {
    let outline = timeline.outline();
    let (mut bounds, mut ends) = (TimeColumn::default(), TimeColumn::default());
    timeline.bounds().for_each(|bound| bounds.push(bound));
    let [mut highest, mut allocated, mut allocations] = [(); 3].map(|()| NumberColumn::default());
    for step in timeline.steps() {
        ends.push(step.end);
        highest.push_signed(step.highest);
        allocated.push(step.allocated);
        allocations.push(step.allocations);
    }
    let [mut counts, mut began, mut lasted, mut bytes, mut blocks] =
        [(); 5].map(|()| NumberColumn::default());
    let alive = timeline.bounds().len();
    let mut cells = timeline.cells().peekable();
    for row in 0..timeline.rows().rows().len() {
        let (mut count, mut last) = (0_u64, 0);
        while let Some(cell) = cells.next_if(|cell| cell.row == row) {
            count += 1;
            began.push((cell.began - last) as u64);
            last = cell.began;
            // A life-time is never negative.
            lasted.push(cell.ended.unwrap_or(alive).saturating_sub(cell.began) as u64);
            bytes.push_signed(cell.bytes);
            blocks.push_signed(cell.blocks.into());
        }
        counts.push(count);
    }
    let numbers = [
        ("timeHighest", highest),
        ("timeAllocated", allocated),
        ("timeAllocations", allocations),
        ("cellCounts", counts),
        ("cellBegan", began),
        ("cellLasted", lasted),
        ("cellBytes", bytes),
        ("cellBlocks", blocks),
        ("timeBounds", bounds.numbers),
        ("timeEnds", ends.numbers),
    ];
    columns.extend(numbers.map(|(name, numbers)| (name, numbers.into_bytes())));
    TimelineHeader {
        bounds: alive,
        steps: timeline.steps().len(),
        cells: timeline.cells().len(),
        peak: timeline.peak(),
        starts_at_peak: outline.has_shrunk(),
        is_complete: outline.is_complete,
        began_late: outline.began_late,
    }
}

fn add_change(change: &HeapChange, columns: &mut HeapColumns) {
    let column = |of: fn(&dmd_analyze::program::BeforeAfter) -> i128| {
        let mut numbers = NumberColumn::default();
        change.changes().iter().for_each(|change| numbers.push_signed(of(change)));
        numbers.into_bytes()
    };
    columns.extend([
        ("bytesBefore", column(|change| BlockSums::usable(&change.before))),
        ("bytesAfter", column(|change| BlockSums::usable(&change.after))),
        ("blocksBefore", column(|change| change.before.num)),
        ("blocksAfter", column(|change| change.after.num)),
    ]);
}

/// Adds the kinds one after another, each with all rows.
fn add_blocks(blocks: &HeapBlocks, columns: &mut HeapColumns) -> BlocksHeader<'static> {
    let [mut bytes, mut counts, mut swapped, mut untouched] = [(); 4].map(|()| NumberColumn::default());
    let kinds = blocks.kinds().iter().flat_map(|kind| &kind.sums);
    for sums in kinds.chain(blocks.reporters().iter().flat_map(|reporter| &reporter.sums)) {
        bytes.push_signed(sums.usable());
        counts.push_signed(sums.num);
        swapped.push_signed(sums.swapped);
        untouched.push_signed(sums.untouched);
    }
    columns.extend([("kindBytes", bytes.into_bytes()), ("kindBlocks", counts.into_bytes())]);
    if blocks.has_resident() {
        columns.extend([("kindSwapped", swapped.into_bytes()), ("kindUntouched", untouched.into_bytes())]);
    }
    let kinds = blocks.kinds().iter().map(|kind| kind.kind.name());
    let reporters = blocks.reporters().iter().map(|reporter| reporter.path.clone());
    BlocksHeader {
        kinds: kinds.collect(),
        reporters: reporters.collect(),
        estimated: blocks.is_estimated(),
        resident: blocks.has_resident(),
        memory: None,
    }
}

/// A column of ascending times.
#[derive(Default)]
struct TimeColumn {
    numbers: NumberColumn,
    last: Duration,
}

impl TimeColumn {
    fn push(&mut self, time: Duration) {
        self.numbers.push(time.saturating_sub(self.last).as_nanos());
        self.last = time;
    }
}
