//! The memory that the program mapped itself, over the time of a recording.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use dmd_format::recording::{MappingAction, MappingDecoder, MappingEvent};
use rustc_hash::FxHashMap;

use super::event::MappingStack;
use super::index::RecordingIndex;
use super::source::RecordingSource;
use super::{Moment, Recording};
use crate::error::AnalyzeError;

/// The mapped bytes of some stacks over the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedLine {
    /// The most mapped bytes in each step of the time.
    pub(crate) live: Vec<u64>,
    pub(crate) highest: u64,
    /// The bytes at the peak of the heap.
    pub(crate) at_peak: u64,
    pub(crate) at_end: u64,
    /// The number of mappings, removed ones included.
    pub(crate) mappings: u64,
}

/// The mappings of a stack that exist at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptMappings {
    pub(crate) stack: u32,
    pub(crate) is_file: bool,
    pub(crate) ranges: u64,
    pub(crate) bytes: u64,
    /// The number of mappings of the stack, removed ones included.
    pub(crate) mappings: u64,
    /// The times of the first and the last of these mappings.
    pub(crate) times: (Duration, Duration),
}

#[derive(Clone, Copy, Debug)]
struct MappedRange {
    end: u64,
    stack: MappingStack,
    /// The tick.
    since: u64,
}

/// The mappings at a time.
#[derive(Debug, Default)]
struct MappingReplay {
    /// The ranges by their first address, without overlaps.
    ranges: BTreeMap<u64, MappedRange>,
}

impl MappingReplay {
    /// Applies a change. Calls `change` with the bytes that a stack gets or loses.
    fn apply(&mut self, event: &MappingEvent, mut change: impl FnMut(MappingStack, i128)) {
        let (start, end) = (event.start, event.start.saturating_add(event.bytes));
        if start >= end {
            return;
        }
        let before = self.ranges.range(..start).next_back().filter(|(_, range)| range.end > start);
        let inside = self.ranges.range(start..end);
        let changed: Vec<u64> = before.into_iter().chain(inside).map(|(at, _)| *at).collect();
        for at in changed {
            let Some(range) = self.ranges.remove(&at) else { continue };
            change(range.stack, -i128::from(range.end.min(end) - at.max(start)));
            if at < start {
                self.ranges.insert(at, MappedRange { end: start, ..range });
            }
            if range.end > end {
                self.ranges.insert(end, range);
            }
        }
        if let MappingAction::Map { stack, is_file } = event.action {
            let stack = (stack, is_file);
            self.ranges.insert(start, MappedRange { end, stack, since: event.tick });
            change(stack, i128::from(end - start));
        }
    }

    fn check(&self, max_entries: usize) -> Result<(), AnalyzeError> {
        match self.ranges.len() > max_entries {
            true => Err(AnalyzeError::TooManyEntries(max_entries)),
            false => Ok(()),
        }
    }
}

/// Calls `each` for the changes of mappings up to a tick, in their order. Reads one chunk at a time. The first pass has
/// already warned about malformed changes.
fn for_each_change(
    source: &mut RecordingSource,
    index: &RecordingIndex,
    last: u64,
    mut each: impl FnMut(&MappingEvent) -> Result<(), AnalyzeError>,
) -> Result<(), AnalyzeError> {
    // The ticks of two processors may differ a little.
    let mut latest = 0;
    for offset in &index.mappings {
        let Some(payload) = source.payload(*offset)? else { continue };
        for event in MappingDecoder::new(&payload).map_while(Result::ok) {
            latest = event.tick.saturating_sub(index.about.tick).max(latest);
            if latest > last {
                return Ok(());
            }
            each(&MappingEvent { tick: latest, ..event })?;
        }
    }
    Ok(())
}

impl Recording {
    /// The stacks that mapped memory.
    pub(crate) fn mapping_stacks(&self) -> Vec<MappingStack> {
        let stacks: BTreeSet<MappingStack> = self.index.mapping_stacks.iter().copied().collect();
        stacks.into_iter().collect()
    }

    /// The mapped bytes of groups of stacks over time. The time of the recording is divided into `steps` equal steps,
    /// and a line has the most bytes in each step. The first line has the sum of all groups. Each group has a line.
    pub(crate) fn mapped_lines(
        &mut self,
        groups: &FxHashMap<MappingStack, usize>,
        steps: usize,
    ) -> Result<Vec<MappedLine>, AnalyzeError> {
        let whole = self.whole()?;
        let length = u64::try_from(self.length(&whole.end).as_nanos()).unwrap_or(u64::MAX);
        let lines = 1 + groups.values().map(|group| group + 1).max().unwrap_or_default();
        let mut lines = vec![MappedLine { live: vec![0; steps], ..MappedLine::default() }; lines];
        let mut now: Vec<(u64, usize)> = vec![(0, 0); lines.len()];
        let mut replay = MappingReplay::default();
        let mut is_after_peak = false;
        let (clock, max_entries) = (&self.index.clock, self.max_entries);
        for_each_change(&mut self.source, &self.index, u64::MAX, |event| {
            if event.tick > whole.peak.tick && !core::mem::replace(&mut is_after_peak, true) {
                lines.iter_mut().zip(&now).for_each(|(line, now)| line.at_peak = now.0);
            }
            let time = u128::from(clock.nanoseconds(event.tick));
            let step = (time * steps as u128 / (u128::from(length) + 1)) as usize;
            let step = step.min(steps.saturating_sub(1));
            let group = |stack: &MappingStack| groups.get(stack).map(|group| group + 1);
            if let Some(stack) = stack(event.action) {
                lines[0].mappings += 1;
                if let Some(group) = group(&stack) {
                    lines[group].mappings += 1;
                }
            }
            let mut touched = BTreeSet::new();
            replay.apply(event, |stack, bytes| {
                for at in [Some(0), group(&stack)].into_iter().flatten() {
                    fill(&mut lines[at], now[at], step);
                    let sum = i128::from(now[at].0) + bytes;
                    now[at] = (u64::try_from(sum).unwrap_or_default(), step);
                    touched.insert(at);
                }
            });
            // A mapping that replaces others is one change.
            for at in touched {
                let line = &mut lines[at];
                line.live[step] = line.live[step].max(now[at].0);
                line.highest = line.highest.max(now[at].0);
            }
            replay.check(max_entries)
        })?;
        for (line, now) in lines.iter_mut().zip(now) {
            fill(line, now, steps);
            line.at_end = now.0;
            if !is_after_peak {
                line.at_peak = now.0;
            }
        }
        Ok(lines)
    }

    /// The mappings that exist at a time, without those from before the recording, by their stacks.
    pub(crate) fn kept_mappings(&mut self, at: Moment) -> Result<Vec<KeptMappings>, AnalyzeError> {
        let last = match at {
            Moment::End => u64::MAX,
            Moment::Peak => self.whole()?.peak.tick,
            Moment::After(time) => {
                self.index.clock.tick(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_add(1))
            }
        };
        let mut replay = MappingReplay::default();
        let mut mappings: FxHashMap<MappingStack, u64> = FxHashMap::default();
        let max_entries = self.max_entries;
        for_each_change(&mut self.source, &self.index, last, |event| {
            if let Some(stack) = stack(event.action) {
                *mappings.entry(stack).or_default() += 1;
            }
            replay.apply(event, |_, _| {});
            replay.check(max_entries)
        })?;
        let mut kept: BTreeMap<MappingStack, KeptMappings> = BTreeMap::new();
        for (start, range) in replay.ranges.iter().filter(|(_, range)| range.since > 0) {
            let time = self.index.clock.time(range.since);
            let entry = kept.entry(range.stack).or_insert_with(|| KeptMappings {
                stack: range.stack.0,
                is_file: range.stack.1,
                ranges: 0,
                bytes: 0,
                mappings: mappings.get(&range.stack).copied().unwrap_or_default(),
                times: (time, time),
            });
            entry.ranges += 1;
            entry.bytes += range.end - start;
            entry.times = (entry.times.0.min(time), entry.times.1.max(time));
        }
        Ok(kept.into_values().collect())
    }
}

fn stack(action: MappingAction) -> Option<MappingStack> {
    match action {
        MappingAction::Map { stack, is_file } => Some((stack, is_file)),
        MappingAction::Unmap => None,
    }
}

/// Raises the steps from the last change to before `end` to the bytes since the change.
fn fill(line: &mut MappedLine, (bytes, from): (u64, usize), end: usize) {
    let steps = line.live.len();
    let to = (end + 1).min(steps);
    for step in line.live.get_mut(from..to).unwrap_or_default() {
        *step = (*step).max(bytes);
    }
}
