//! The code addresses of a unit, from the unit's first entry.

use gimli::constants::{self as dw, DwAt};
use gimli::{
    AttributeValue, DebugAddrBase, DebugRngListsBase, DebugRngListsIndex, Encoding, RangeListsOffset,
};

use super::read::{SectionSlice, UnitError, UnitReader};

/// The attributes about a unit's code, from the unit's first entry.
#[derive(Clone, Copy)]
pub(super) struct UnitCode {
    low: Option<u64>,
    length: Option<u64>,
    ranges: Option<CodeRanges>,
    lists: DebugRngListsBase<usize>,
    is_foreign: bool,
}

/// The position of a unit's table of ranges.
#[derive(Clone, Copy)]
enum CodeRanges {
    At(usize),
    Indexed(DebugRngListsIndex<usize>),
}

impl UnitCode {
    /// The values for a unit without attributes. `lists` is the position that the format defines for the lists of
    /// ranges of such a unit.
    pub(super) fn new(lists: usize) -> Self {
        Self { low: None, length: None, ranges: None, lists: DebugRngListsBase(lists), is_foreign: false }
    }

    /// Whether the unit is written in a language other than Rust.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Stores an attribute. Returns whether it is an attribute about code.
    pub(super) fn read(&mut self, name: DwAt, value: &AttributeValue<SectionSlice<'_>>) -> bool {
        match (name, value) {
            (dw::DW_AT_rnglists_base, AttributeValue::DebugRngListsBase(base)) => self.lists = *base,
            (dw::DW_AT_language, value) => {
                self.is_foreign = *value != AttributeValue::Language(dw::DW_LANG_Rust);
            }
            (dw::DW_AT_low_pc, AttributeValue::Addr(address)) => self.low = Some(*address),
            (dw::DW_AT_high_pc, value) => self.length = value.udata_value(),
            (dw::DW_AT_ranges, AttributeValue::RangeListsRef(offset)) => {
                self.ranges = Some(CodeRanges::At(offset.0));
            }
            (dw::DW_AT_ranges, AttributeValue::DebugRngListsIndex(index)) => {
                self.ranges = Some(CodeRanges::Indexed(*index));
            }
            _ => return false,
        }
        true
    }
}

/// The start address that linkers use for ranges of removed code.
const REMOVED: u64 = 0;

impl UnitCode {
    /// Adds the code ranges of the unit that starts at the offset `start`. In a damaged table of ranges, adds only the
    /// ranges before the damage.
    pub(super) fn add_code(
        &self,
        reading: &mut UnitReader<'_>,
        encoding: Encoding,
        addresses: DebugAddrBase<usize>,
        start: u64,
    ) -> Result<(), UnitError> {
        let mut code = Vec::new();
        if let (Some(low), Some(length)) = (self.low, self.length) {
            code.push(low..low.saturating_add(length));
        }
        let sections = reading.dwarf;
        let offset = self.ranges.and_then(|ranges| match ranges {
            CodeRanges::At(offset) => Some(RangeListsOffset(offset)),
            CodeRanges::Indexed(index) => sections.ranges.get_offset(encoding, self.lists, index).ok(),
        });
        if let Some(offset) = offset {
            let low = self.low.unwrap_or(0);
            let ranges = sections.ranges.ranges(offset, encoding, low, &sections.debug_addr, addresses);
            if let Ok(mut ranges) = ranges {
                while let Ok(Some(range)) = ranges.next() {
                    reading.work(1)?;
                    code.push(range.begin..range.end);
                }
            }
        }
        let live = code.into_iter().filter(|range| range.start > REMOVED && range.start < range.end);
        reading.code.extend(live.map(|range| (range, start)));
        Ok(())
    }
}
