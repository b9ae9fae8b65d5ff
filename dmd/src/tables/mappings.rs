//! The mappings that the program made itself, each with the stack that made it.
//!
//! Hooks add and remove ranges. The kernel lists which of the addresses are mapped, and with which access and file, so
//! the table has only what the kernel does not know: a dump joins both lists. The C library's own mappings do not pass
//! through hooks.

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
}

/// Ranges in the order of addresses, without overlaps.
pub(crate) struct MappingTable {
    /// No part is empty.
    parts: PageVec<PageVec<MappedRange>>,
    count: usize,
    lost: u64,
}

pub(crate) static MAPPINGS: LockedValue<MappingTable> = LockedValue::new(MappingTable::new());

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(MAPPINGS.lock());
}

impl MappingTable {
    const fn new() -> Self {
        Self { parts: pages::list(), count: 0, lost: 0 }
    }

    /// Adds a range. It replaces what was there before, as `MAP_FIXED` does.
    pub(crate) fn add(&mut self, start: usize, end: usize, trace: TraceId) {
        self.remove(start, end);
        let mut new = MappedRange { start, end, trace };
        // Neighbors of the same stack become one range.
        let before = self.position(start.saturating_sub(1));
        if let Some(before) = self.take_if(before, |range| (range.end, range.trace) == (start, trace)) {
            new.start = before.start;
        }
        let after = self.position(start);
        if let Some(after) = self.take_if(after, |range| (range.start, range.trace) == (end, trace)) {
            new.end = after.end;
        }
        self.insert(new);
    }

    /// Removes all addresses of a range. Returns the stack that mapped them; `None` if one recorded range does not
    /// contain all of them.
    pub(crate) fn remove(&mut self, start: usize, end: usize) -> Option<TraceId> {
        let (mut part, mut at) = self.position(start);
        let mut removed: Option<(MappedRange, MappedRange)> = None;
        let mut count = 0;
        while let Some(ranges) = self.parts.get_mut(part) {
            let last = ranges.partition_point(|range| range.start < end);
            let is_last = last < ranges.len();
            if at < last {
                let head = removed.map_or(ranges[at], |(head, _)| head);
                removed = Some((head, ranges[last - 1]));
                count += last - at;
                ranges.drain(at..last);
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
        self.count -= count;
        let (head, tail) = removed?;
        if head.start < start {
            self.insert(MappedRange { end: start, ..head });
        }
        if tail.end > end {
            self.insert(MappedRange { start: end, ..tail });
        }
        (count == 1 && head.start <= start && end <= head.end).then_some(head.trace)
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
        *self = Self::new();
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
                table.add(start, end, trace);
                expected[start..end].fill(Some(trace));
            } else {
                let removed = table.remove(start, end);
                assert!(removed.is_none() || expected[start..end].iter().all(|trace| *trace == removed));
                expected[start..end].fill(None);
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
        // Every second range first, so that parts divide.
        for index in (0..MOST).step_by(2).chain((1..MOST).step_by(2)) {
            table.add(2 * index, 2 * index + 1, TraceId(1));
        }
        assert_eq!((table.ranges().count(), table.lost()), (MOST, 0));
        table.add(2 * MOST, 2 * MOST + 1, TraceId(1));
        // The gap in the middle of a range makes one more.
        assert_eq!((table.ranges().count(), table.lost()), (MOST, 1));
        assert_eq!(table.remove(0, 2 * MOST), None);
        assert_eq!((table.ranges().count(), table.parts.len()), (0, 0));
    }
}
