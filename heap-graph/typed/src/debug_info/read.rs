//! The results of reading the units of a file, and the limits for reading.
//!
//! A malicious file may try to exhaust the reader: an entry of one byte may have a million attributes, and each of a
//! million units may use another position in one table of abbreviations. So each attribute and each byte of a table
//! counts as work, and reading stops at a multiple of the size of the sections.

use core::ops::Range;
use std::sync::Arc;

use gimli::{Abbreviations, DebugAbbrev, Dwarf, EndianSlice, LittleEndian, Reader as _, Section as _};
use hashbrown::HashMap;

use super::names::{MOST_BYTES, NameTable};
use super::types::{DebugNameId, StaticItem, Type};
use crate::error::DebugInfoLimit;

/// The number of attributes that are always allowed. Further attributes are allowed for each byte.
const WORK: u64 = 1 << 20;
const WORK_A_BYTE: u64 = 4;

/// A part of a section.
pub(super) type SectionSlice<'s> = EndianSlice<'s, LittleEndian>;

/// The reason why a unit cannot be read.
pub(super) enum UnitError {
    Gimli(gimli::Error),
    Bound(DebugInfoLimit),
}

impl From<gimli::Error> for UnitError {
    fn from(error: gimli::Error) -> Self {
        Self::Gimli(error)
    }
}

/// A reader of units, with the data found so far.
pub(super) struct UnitReader<'s> {
    pub(super) dwarf: &'s Dwarf<SectionSlice<'s>>,
    pub(super) names: NameTable,
    pub(super) types: Vec<Type>,
    /// The offset of each type's entry, in ascending order.
    pub(super) offsets: Vec<u64>,
    pub(super) statics: Vec<StaticItem>,
    pub(super) vtables: Vec<StaticItem>,
    /// The start of each unit, in ascending order.
    pub(super) units: Vec<u64>,
    /// The code of units, each with the start of its unit.
    pub(super) code: Vec<(Range<u64>, u64)>,
    /// Whether to leave out units of other languages.
    pub(super) only_rust: bool,
    abbreviations: HashMap<usize, Arc<Abbreviations>>,
    left: u64,
}

impl<'s> UnitReader<'s> {
    /// A reader of one of `parts` parts of a file, with its share of the limits.
    pub(super) fn for_part(dwarf: &'s Dwarf<SectionSlice<'s>>, parts: usize, only_rust: bool) -> Self {
        let size = dwarf.debug_info.reader().len()
            + dwarf.debug_abbrev.reader().len()
            + dwarf.debug_str.reader().len()
            + dwarf.debug_line.reader().len();
        Self {
            dwarf,
            names: NameTable::new(MOST_BYTES / parts),
            types: Vec::new(),
            offsets: Vec::new(),
            statics: Vec::new(),
            vtables: Vec::new(),
            units: Vec::new(),
            code: Vec::new(),
            only_rust,
            abbreviations: HashMap::new(),
            left: (WORK + WORK_A_BYTE * size as u64) / parts as u64,
        }
    }

    /// Adds the data of another reader, which has read the units after the units of this reader.
    pub(super) fn append(&mut self, other: Self) -> Option<()> {
        let names = self.names.append(&other.names)?;
        let renamed = |name: DebugNameId| names[name.number()];
        self.types.extend(other.types.into_iter().map(|of| of.moved(renamed, 0)));
        self.offsets.extend(other.offsets);
        let of = |one: StaticItem| StaticItem { name: renamed(one.name), ..one };
        self.statics.extend(other.statics.into_iter().map(of));
        self.vtables.extend(other.vtables.into_iter().map(of));
        self.units.extend(other.units);
        self.code.extend(other.code);
        Some(())
    }

    /// Counts work. Fails at the limit.
    pub(super) fn work(&mut self, amount: u64) -> Result<(), UnitError> {
        self.left = self.left.checked_sub(amount).ok_or(UnitError::Bound(DebugInfoLimit::Work))?;
        Ok(())
    }

    /// The table of abbreviations at an offset of the section of abbreviations.
    pub(super) fn abbreviations(&mut self, offset: usize) -> Result<Arc<Abbreviations>, UnitError> {
        if let Some(known) = self.abbreviations.get(&offset) {
            return Ok(known.clone());
        }
        let section = *self.dwarf.debug_abbrev.reader();
        let mut table = section;
        table.skip(offset)?;
        self.count_table(table)?;
        let read = DebugAbbrev::new(section.slice(), LittleEndian)
            .abbreviations(gimli::DebugAbbrevOffset(offset))?;
        let read = Arc::new(read);
        self.abbreviations.insert(offset, read.clone());
        Ok(read)
    }

    /// Counts the work of a table of abbreviations (DWARF 5, section 7.5.3).
    fn count_table(&mut self, mut table: SectionSlice<'s>) -> Result<(), UnitError> {
        while table.read_uleb128()? != 0 {
            table.read_uleb128()?;
            table.read_u8()?;
            loop {
                self.work(1)?;
                let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
                if form == u64::from(gimli::constants::DW_FORM_implicit_const.0) {
                    table.read_sleb128()?;
                }
                if name == 0 && form == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}
