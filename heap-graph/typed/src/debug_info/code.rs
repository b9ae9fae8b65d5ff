//! Where the code of a unit is, from the unit's first entry.

use gimli::constants::{self as dw, DwAt};
use gimli::{AttributeValue, DebugRngListsBase, DebugRngListsIndex, RangeListsOffset};

use super::read::{Fault, Slice};
use super::unit::Unit;

/// What the first entry of a unit says of its code.
#[derive(Clone, Copy)]
pub(super) struct Root {
    low: Option<u64>,
    length: Option<u64>,
    ranges: Option<CodeRanges>,
    lists: DebugRngListsBase<usize>,
    is_foreign: bool,
}

/// Where a unit's table of ranges is.
#[derive(Clone, Copy)]
enum CodeRanges {
    At(usize),
    Indexed(DebugRngListsIndex<usize>),
}

impl Root {
    /// The values of an entry without any attribute. `lists` is where the format has the lists of ranges then.
    pub(super) fn new(lists: usize) -> Self {
        Self { low: None, length: None, ranges: None, lists: DebugRngListsBase(lists), is_foreign: false }
    }

    /// Whether the unit is in another language than Rust.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Takes over an attribute. Gives whether it is one of these.
    pub(super) fn read(&mut self, name: DwAt, value: &AttributeValue<Slice<'_>>) -> bool {
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

/// Linkers let the ranges of code that they removed start here.
const REMOVED: u64 = 0;

impl Unit<'_, '_> {
    /// Notes where the unit's code is. A damaged table of ranges has none.
    pub(super) fn add_code(&mut self, root: &Root) -> Result<(), Fault> {
        let mut code = Vec::new();
        if let (Some(low), Some(length)) = (root.low, root.length) {
            code.push(low..low.saturating_add(length));
        }
        if let Some(offset) = root.ranges.and_then(|ranges| self.ranges_offset(ranges, root.lists)) {
            let sections = &self.reading.dwarf;
            let ranges = sections.ranges.ranges(
                offset,
                self.header.encoding(),
                root.low.unwrap_or(0),
                &sections.debug_addr,
                self.addresses,
            );
            if let Ok(mut ranges) = ranges {
                while let Ok(Some(range)) = ranges.next() {
                    self.reading.work(1)?;
                    code.push(range.begin..range.end);
                }
            }
        }
        let start = self.base;
        let live = code.into_iter().filter(|range| range.start > REMOVED && range.start < range.end);
        self.reading.code.extend(live.map(|range| (range, start)));
        Ok(())
    }

    fn ranges_offset(
        &self,
        ranges: CodeRanges,
        lists: DebugRngListsBase<usize>,
    ) -> Option<RangeListsOffset<usize>> {
        match ranges {
            CodeRanges::At(offset) => Some(RangeListsOffset(offset)),
            CodeRanges::Indexed(index) => {
                self.reading.dwarf.ranges.get_offset(self.header.encoding(), lists, index).ok()
            }
        }
    }
}
