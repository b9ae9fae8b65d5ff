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

/// Addresses that one stack has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) trace: TraceId,
}

/// Ranges in the order of addresses, without overlaps.
pub(crate) struct MappingTable {
    ranges: PageVec<MappedRange>,
}

pub(crate) static MAPPINGS: LockedValue<MappingTable> =
    LockedValue::new(MappingTable { ranges: pages::list() });

pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(MAPPINGS.lock());
}

impl MappingTable {
    /// Adds a range. It replaces what was there before, as `MAP_FIXED` does.
    pub(crate) fn add(&mut self, start: usize, end: usize, trace: TraceId) {
        self.remove(start, end);
        let at = self.ranges.partition_point(|range| range.end <= start);
        let (mut first, mut new) = (at, MappedRange { start, end, trace });
        if let Some(before) = at.checked_sub(1).map(|before| self.ranges[before])
            && (before.end, before.trace) == (start, trace)
        {
            (first, new.start) = (at - 1, before.start);
        }
        let mut last = at;
        if let Some(after) = self.ranges.get(at)
            && (after.start, after.trace) == (end, trace)
        {
            (last, new.end) = (at + 1, after.end);
        }
        if first < last {
            self.ranges[first] = new;
            self.ranges.drain(first + 1..last);
        } else {
            self.insert(at, new);
        }
    }

    /// Removes all addresses of a range. Returns the stack that mapped them; `None` if one recorded range does not
    /// contain all of them.
    pub(crate) fn remove(&mut self, start: usize, end: usize) -> Option<TraceId> {
        let first = self.ranges.partition_point(|range| range.end <= start);
        let last = self.ranges.partition_point(|range| range.start < end);
        if first >= last {
            return None;
        }
        let (head, tail) = (self.ranges[first], self.ranges[last - 1]);
        self.ranges.drain(first..last);
        if tail.end > end {
            self.insert(first, MappedRange { start: end, ..tail });
        }
        if head.start < start {
            self.insert(first, MappedRange { end: start, ..head });
        }
        let is_one = last == first + 1 && head.start <= start && end <= head.end;
        is_one.then_some(head.trace)
    }

    fn insert(&mut self, at: usize, range: MappedRange) {
        if range.start < range.end && self.ranges.len() < MOST && self.ranges.try_reserve(1).is_ok() {
            self.ranges.insert(at, range);
        }
    }

    /// Forgets all ranges.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    pub(crate) fn ranges(&self) -> &[MappedRange] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies random steps to the table and to a simple list of pages, and compares both.
    #[test]
    fn ranges_are_what_a_list_of_pages_is() {
        const PAGES: usize = 24;
        let mut table = MappingTable { ranges: pages::list() };
        let mut expected = [None; PAGES];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut draw = |most: u64| {
                state = state.rotate_left(17).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                (state >> 33) % most
            };
            let start = draw(PAGES as u64) as usize;
            let end = start + 1 + draw((PAGES - start) as u64) as usize;
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
        }
    }
}
