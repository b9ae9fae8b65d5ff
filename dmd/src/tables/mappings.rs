//! The mappings that the program made itself, each with the stack that made it.
//!
//! Hooks add and remove ranges. The kernel lists which of the addresses are mapped, and with which access and file, so
//! the table has only what the kernel does not know: a dump joins both lists. The C library's own mappings do not pass
//! through hooks.

use dmd_format::recording::{MappingAction, MappingEvent};

use crate::system::clock;
use crate::system::lock::{Lock, LockedValue};
use crate::system::pages::{self, PageVec};
use crate::tables::trace_id::TraceId;

/// The maximum number of ranges, the kernel's usual maximum of mappings. Further ranges are left out.
const MOST: usize = 1 << 16;

/// The maximum number of ranges in a part of the table: a part has one page. So a change of one range moves few others.
const PART: usize = 4096 / size_of::<MappedRange>();

/// Addresses that one stack has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) trace: TraceId,
    /// Whether the range has the contents of a file.
    pub(crate) is_file: bool,
}

impl MappedRange {
    fn is_like(&self, other: &Self) -> bool {
        (self.trace, self.is_file) == (other.trace, other.is_file)
    }
}

/// The maximum number of removed ranges that are kept for a call that fails.
const MOST_REMOVED: usize = 8;

/// The ranges that were removed from the table, in the order of addresses. Ranges beyond the maximum are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemovedRanges {
    ranges: [Option<MappedRange>; MOST_REMOVED],
    /// Whether a range has the contents of a file.
    pub(crate) is_file: bool,
}

impl RemovedRanges {
    fn push(&mut self, range: MappedRange) {
        self.is_file |= range.is_file;
        if let Some(place) = self.ranges.iter_mut().find(|place| place.is_none()) {
            *place = Some(range);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = MappedRange> {
        self.ranges.iter().flatten().copied()
    }
}

/// The maximum number of events that wait for the recording.
const MOST_EVENTS: usize = 1 << 17;

/// The changes of the table since a recording last took them.
pub(crate) struct MappingLog {
    is_on: bool,
    pub(crate) events: PageVec<MappingEvent>,
    pub(crate) lost: u64,
}

impl MappingLog {
    const fn new() -> Self {
        Self { is_on: false, events: pages::list(), lost: 0 }
    }

    fn push(&mut self, tick: u64, start: usize, end: usize, action: MappingAction) {
        let event = MappingEvent { tick, start: start as u64, bytes: (end - start) as u64, action };
        if self.events.len() >= MOST_EVENTS || !pages::push(&mut self.events, event) {
            self.lost += 1;
        }
    }
}

/// Ranges in the order of addresses, without overlaps.
pub(crate) struct MappingTable {
    /// No part is empty.
    parts: PageVec<PageVec<MappedRange>>,
    count: usize,
    lost: u64,
    log: MappingLog,
}

pub(crate) static MAPPINGS: LockedValue<MappingTable> = LockedValue::new(MappingTable::new());

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(MAPPINGS.lock());
}

impl MappingTable {
    const fn new() -> Self {
        Self { parts: pages::list(), count: 0, lost: 0, log: MappingLog::new() }
    }

    /// Adds a range. It replaces what was there before, as `MAP_FIXED` does.
    pub(crate) fn add(&mut self, range: MappedRange) {
        let MappedRange { start, end, trace, is_file } = range;
        if start >= end {
            return;
        }
        self.cut(start, end);
        if self.log.is_on {
            self.log.push(clock::ticks(), start, end, MappingAction::Map { stack: trace.0, is_file });
        }
        let mut new = range;
        // Neighbors of the same stack become one range.
        let before = self.position(start.saturating_sub(1));
        if let Some(before) = self.take_if(before, |range| range.end == start && range.is_like(&new)) {
            new.start = before.start;
        }
        let after = self.position(start);
        if let Some(after) = self.take_if(after, |range| range.start == end && range.is_like(&new)) {
            new.end = after.end;
        }
        self.insert(new);
    }

    /// Removes all addresses of a range. An empty range removes no address; the result then has the kind of the mapping
    /// at its start.
    pub(crate) fn remove(&mut self, start: usize, end: usize) -> RemovedRanges {
        if start == end {
            let (part, at) = self.position(start);
            let there = self.parts.get(part).and_then(|ranges| ranges.get(at));
            let is_file = there.is_some_and(|range| range.start <= start && range.is_file);
            return RemovedRanges { is_file, ..RemovedRanges::default() };
        }
        let (removed, has_changed) = self.cut(start, end);
        // The log contains ranges that had no room in the table. Their ends must not be missing.
        if self.log.is_on && (has_changed || self.lost > 0) && start < end {
            self.log.push(clock::ticks(), start, end, MappingAction::Unmap);
        }
        removed
    }

    /// Removes all addresses of a range. Returns the removed ranges, and whether there were any.
    fn cut(&mut self, start: usize, end: usize) -> (RemovedRanges, bool) {
        let mut removed = RemovedRanges::default();
        if start >= end {
            return (removed, false);
        }
        let (mut part, mut at) = self.position(start);
        let mut outer: Option<(MappedRange, MappedRange)> = None;
        while let Some(ranges) = self.parts.get_mut(part) {
            let last = ranges.partition_point(|range| range.start < end);
            let is_last = last < ranges.len();
            if at < last {
                let head = outer.map_or(ranges[at], |(head, _)| head);
                outer = Some((head, ranges[last - 1]));
                self.count -= last - at;
                for range in ranges.drain(at..last) {
                    removed.push(MappedRange {
                        start: range.start.max(start),
                        end: range.end.min(end),
                        ..range
                    });
                }
            }
            if ranges.is_empty() {
                self.parts.remove(part);
            } else {
                part += 1;
            }
            if is_last {
                break;
            }
            at = 0;
        }
        let Some((head, tail)) = outer else { return (removed, false) };
        if head.start < start {
            self.insert(MappedRange { end: start, ..head });
        }
        if tail.end > end {
            self.insert(MappedRange { start: end, ..tail });
        }
        (removed, true)
    }

    /// The place of the first range that ends after an address: its part, and its index there.
    fn position(&self, address: usize) -> (usize, usize) {
        let ends_before = |range: &MappedRange| range.end <= address;
        let part = self.parts.partition_point(|ranges| ranges.last().is_some_and(ends_before));
        (part, self.parts.get(part).map_or(0, |ranges| ranges.partition_point(ends_before)))
    }

    /// Removes the range at a place if it fits.
    fn take_if(
        &mut self,
        (part, at): (usize, usize),
        fits: impl Fn(&MappedRange) -> bool,
    ) -> Option<MappedRange> {
        let ranges = self.parts.get_mut(part)?;
        ranges.get(at).filter(|range| fits(range))?;
        let range = ranges.remove(at);
        if ranges.is_empty() {
            self.parts.remove(part);
        }
        self.count -= 1;
        Some(range)
    }

    fn insert(&mut self, range: MappedRange) {
        if range.start >= range.end {
            return;
        }
        if self.count >= MOST || !self.make_room(range.start) {
            self.lost += 1;
            return;
        }
        let (mut part, mut at) = self.position(range.start);
        if part == self.parts.len() {
            // Behind all ranges: the last part has room.
            part -= 1;
            at = self.parts[part].len();
        }
        self.parts[part].insert(at, range);
        self.count += 1;
    }

    /// Makes room for a range in the part that gets it. Returns false if memory is short.
    fn make_room(&mut self, address: usize) -> bool {
        let (part, _) = self.position(address);
        let part = part.min(self.parts.len().saturating_sub(1));
        let Some(full) = self.parts.get(part).map(|ranges| ranges.len() == PART) else {
            return self.new_part(0);
        };
        if !full {
            return true;
        }
        if !self.new_part(part + 1) {
            return false;
        }
        let (ranges, rest) = self.parts.split_at_mut(part + 1);
        let (ranges, rest) = (&mut ranges[part], &mut rest[0]);
        rest.extend_from_slice(&ranges[PART / 2..]);
        ranges.truncate(PART / 2);
        true
    }

    fn new_part(&mut self, at: usize) -> bool {
        let mut ranges = pages::list();
        let has_room = self.parts.try_reserve(1).is_ok() && ranges.try_reserve_exact(PART).is_ok();
        if has_room {
            self.parts.insert(at, ranges);
        }
        has_room
    }

    /// Forgets all ranges.
    pub(crate) fn clear(&mut self) {
        (self.parts, self.count, self.lost) = (pages::list(), 0, 0);
    }

    /// Starts to log changes. The log starts with the ranges of now, at the time `tick`.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_log(&mut self, tick: u64) {
        self.log = MappingLog { is_on: true, ..MappingLog::new() };
        for MappedRange { start, end, trace, is_file } in self.parts.iter().flatten() {
            self.log.push(tick, *start, *end, MappingAction::Map { stack: trace.0, is_file: *is_file });
        }
    }

    /// Stops to log changes.
    #[cfg(target_os = "linux")]
    pub(crate) fn stop_log(&mut self) {
        self.log = MappingLog::new();
    }

    /// Takes the changes out of the log.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_log(&mut self) -> MappingLog {
        let is_on = self.log.is_on;
        core::mem::replace(&mut self.log, MappingLog { is_on, ..MappingLog::new() })
    }

    pub(crate) fn ranges(&self) -> impl Iterator<Item = &MappedRange> {
        self.parts.iter().flatten()
    }

    /// The number of ranges that were left out, because the table was full or memory was short.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies random steps to the table and to a simple list of pages, and compares both.
    #[test]
    fn ranges_are_what_a_list_of_pages_is() {
        const PAGES: usize = 1200;
        let mut table = MappingTable::new();
        let mut expected = [None; PAGES];
        let mut state = 1_u64;
        for _ in 0..8_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut draw = |most: u64| {
                state = state.rotate_left(17).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                (state >> 33) % most
            };
            let start = draw(PAGES as u64) as usize;
            // Short ranges, so that there are several parts, and some long ranges.
            let most = if draw(200) == 0 { PAGES } else { 4 };
            let end = (start + 1 + draw(most as u64) as usize).min(PAGES);
            if draw(2) == 0 {
                let trace = TraceId(draw(3) as u32);
                table.add(MappedRange { start, end, trace, is_file: false });
                expected[start..end].fill(Some(trace));
            } else {
                let removed = table.remove(start, end);
                let mut pages = [None; PAGES];
                for range in removed.iter() {
                    pages[range.start..range.end].fill(Some(range.trace));
                }
                let is_whole = removed.ranges[MOST_REMOVED - 1].is_none();
                assert!(!is_whole || pages[start..end] == expected[start..end]);
                if is_whole && draw(2) == 0 {
                    // The call has failed.
                    removed.iter().for_each(|range| table.add(range));
                } else {
                    expected[start..end].fill(None);
                }
            }
            let mut found = [None; PAGES];
            for range in table.ranges() {
                assert!(range.start < range.end);
                found[range.start..range.end].fill(Some(range.trace));
            }
            assert_eq!(found, expected);
            // The ranges stay in the order of addresses.
            assert!(table.ranges().is_sorted_by_key(|range| range.start));
            assert!(table.parts.iter().all(|ranges| (1..=PART).contains(&ranges.len())));
            assert_eq!((table.count, table.lost()), (table.ranges().count(), 0));
        }
    }

    #[test]
    fn ranges_beyond_the_maximum_are_counted() {
        let mut table = MappingTable::new();
        let range = |start| MappedRange { start, end: start + 1, trace: TraceId(1), is_file: false };
        // Every second range first, so that parts divide.
        for index in (0..MOST).step_by(2).chain((1..MOST).step_by(2)) {
            table.add(range(2 * index));
        }
        assert_eq!((table.ranges().count(), table.lost()), (MOST, 0));
        table.add(range(2 * MOST));
        assert_eq!((table.ranges().count(), table.lost()), (MOST, 1));
        assert_eq!(table.remove(0, 2 * MOST).iter().count(), MOST_REMOVED);
        assert_eq!((table.ranges().count(), table.parts.len()), (0, 0));
    }

    #[test]
    fn a_log_has_the_ranges_of_its_start_and_all_changes() {
        let mut table = MappingTable::new();
        let range = |start, end| MappedRange { start, end, trace: TraceId(7), is_file: true };
        table.add(range(0, 4));
        table.start_log(100);
        table.add(range(8, 12));
        table.remove(20, 30);
        assert!(table.remove(1, 2).iter().eq([range(1, 2)]));
        // An empty range changes no address.
        assert!(table.remove(2, 2).is_file && !table.remove(1, 1).is_file);
        let log = table.take_log();
        let map = MappingAction::Map { stack: 7, is_file: true };
        let events: Vec<_> =
            log.events.iter().map(|event| (event.start, event.bytes, event.action)).collect();
        assert_eq!(events, [(0, 4, map), (8, 4, map), (1, 1, MappingAction::Unmap)]);
        assert!(log.events[0].tick == 100 && log.lost == 0);
        table.stop_log();
        table.add(range(8, 12));
        assert!(table.take_log().events.is_empty());
    }
    #[test]
    fn a_log_has_the_end_of_a_range_without_room() {
        let mut table = MappingTable::new();
        let range = |start| MappedRange { start, end: start + 1, trace: TraceId(1), is_file: false };
        (0..MOST).for_each(|index| table.add(range(2 * index)));
        table.start_log(1);
        table.take_log();
        table.add(range(2 * MOST));
        table.remove(2 * MOST, 2 * MOST + 1);
        let starts: Vec<_> =
            table.take_log().events.iter().map(|event| (event.start, event.action)).collect();
        let map = MappingAction::Map { stack: 1, is_file: false };
        let start = 2 * MOST as u64;
        assert_eq!(starts, [(start, map), (start, MappingAction::Unmap)]);
    }
}
