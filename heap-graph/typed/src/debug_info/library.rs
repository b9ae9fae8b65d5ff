//! The parts of a program's debug information, from its own file and from shared libraries, and the addresses of
//! their code.

use core::ops::Range;

use super::DebugInfo;
use super::names::NameTable;
use super::read::UnitReader;
use super::types::{StaticItem, Type, TypeId};
use crate::error::{DebugInfoLimit, TypedError};

/// A shared library that a program has loaded, with its debug information.
#[derive(Clone, Copy, Debug)]
pub struct Library<'f> {
    path: &'f str,
    pub(super) file: &'f [u8],
    displacement: u64,
}

impl<'f> Library<'f> {
    /// A library. `path` is its path in the dump, and `file` is the contents of its file or its debug file.
    /// `displacement` is its [bias](dmd_analyze::LoadedModule::bias) minus the program's bias; the subtraction may
    /// wrap around.
    pub fn new(path: &'f str, file: &'f [u8], displacement: u64) -> Self {
        Self { path, file, displacement }
    }
}

/// A file, and the index of the first type from it.
#[derive(Debug)]
struct InfoFile {
    /// The path of the file; empty for the program.
    path: String,
    /// The number to add to the file's addresses, for comparing them with addresses of the program's file.
    displacement: u64,
    first_type: usize,
}

/// The positions of the entries and the code of units.
#[derive(Debug)]
pub(super) struct UnitTable {
    files: Vec<InfoFile>,
    /// The start of each unit, in ascending order.
    starts: Vec<u64>,
    /// The code of units by address, each with the start of its unit.
    code: Vec<(Range<u64>, u64)>,
}

/// Everything that was read from files, before it is indexed.
#[derive(Debug)]
pub(super) struct InfoParts {
    pub(super) names: NameTable,
    pub(super) types: Vec<Type>,
    pub(super) offsets: Vec<u64>,
    pub(super) statics: Vec<StaticItem>,
    pub(super) vtables: Vec<StaticItem>,
    pub(super) units: UnitTable,
}

impl InfoParts {
    /// The parts from the program's own file.
    pub(super) fn from_readers(reading: UnitReader<'_>) -> Self {
        let UnitReader { names, types, offsets, statics, vtables, units, mut code, .. } = reading;
        code.sort_by_key(|(range, start)| (range.start, *start));
        let files = vec![InfoFile { path: String::new(), displacement: 0, first_type: 0 }];
        Self { names, types, offsets, statics, vtables, units: UnitTable { files, starts: units, code } }
    }

    /// Adds the parts of a library.
    pub(super) fn append(&mut self, other: Self, library: &Library<'_>) -> Result<(), TypedError> {
        let names = self.names.append(&other.names).ok_or(TypedError::Bounded(0, DebugInfoLimit::Names))?;
        let renamed = |name: super::DebugNameId| names[name.number()];
        // The library's offsets move behind all offsets of `self`. The offset 0 means "no reference", and does not
        // move.
        let by = self
            .offsets
            .last()
            .copied()
            .max(self.units.starts.last().copied())
            .unwrap_or(0)
            .saturating_add(1);
        let displacement = library.displacement;
        let file = InfoFile { path: library.path.to_owned(), displacement, first_type: self.types.len() };
        self.units.files.push(file);
        self.types.extend(other.types.into_iter().map(|of| of.moved(renamed, by)));
        self.offsets.extend(other.offsets.into_iter().map(|offset| offset.saturating_add(by)));
        let placed = |one: StaticItem| StaticItem {
            name: renamed(one.name),
            address: one.address.wrapping_add(displacement),
            of: one.of.moved(by),
            ..one
        };
        // The thread-local memory of a library can be found only with the loader's tables, so it is left out.
        self.statics.extend(other.statics.into_iter().filter(|one| !one.of_threads).map(placed));
        self.vtables.extend(other.vtables.into_iter().map(placed));
        self.units.starts.extend(other.units.starts.into_iter().map(|start| start.saturating_add(by)));
        let code = other.units.code.into_iter().map(|(range, start)| {
            let [from, to] = [range.start, range.end].map(|address| address.wrapping_add(displacement));
            (from..to, start.saturating_add(by))
        });
        self.units.code.extend(code);
        self.units.code.sort_by_key(|(range, start)| (range.start, *start));
        Ok(())
    }
}

/// The location of code: the program or a library, and a unit in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodePlace {
    file: usize,
    /// The start of the unit; `None` without a known unit.
    unit: Option<u64>,
}

/// The entries of each class of types, in ascending order.
#[derive(Debug)]
pub(crate) struct ClassEntries {
    /// The start of each class's entries, by the class's first type, and the end of the last class.
    starts: Vec<u32>,
    entries: Vec<u32>,
}

impl ClassEntries {
    pub(crate) fn new(info: &DebugInfo) -> Self {
        let mut starts = vec![0_u32; info.same_as.len() + 1];
        info.same_as.iter().for_each(|class| starts[class.index() + 1] += 1);
        (1..starts.len()).for_each(|class| starts[class] += starts[class - 1]);
        let mut next = starts.clone();
        let mut entries = vec![0; info.same_as.len()];
        for (entry, class) in info.same_as.iter().enumerate() {
            let place = &mut next[class.index()];
            entries[*place as usize] = entry as u32;
            *place += 1;
        }
        Self { starts, entries }
    }

    /// Whether a class has an entry in a range of types.
    fn has_any_in(&self, class: TypeId, range: &Range<usize>) -> bool {
        let [start, end] = [0, 1].map(|next| self.starts[class.index() + next] as usize);
        let entries = &self.entries[start..end];
        let first = entries.get(entries.partition_point(|entry| (*entry as usize) < range.start));
        first.is_some_and(|entry| (*entry as usize) < range.end)
    }
}

impl DebugInfo {
    /// Whether all types are from one file.
    pub(crate) fn is_one_file(&self) -> bool {
        self.units.files.len() == 1
    }

    /// The location of code, by the path of its module (empty for the program) and its address in the file. `None`
    /// for a module with unknown types.
    pub(crate) fn place_of_code(&self, module: &str, address: u64) -> Option<CodePlace> {
        let UnitTable { files, code, .. } = &self.units;
        let file = files.iter().position(|file| file.path == module)?;
        let address = address.wrapping_add(files[file].displacement);
        let after = code.partition_point(|(range, _)| range.start <= address);
        let before = after.checked_sub(1).map(|index| &code[index]);
        let unit = before.filter(|(range, _)| range.contains(&address)).map(|(_, start)| *start);
        Some(CodePlace { file, unit })
    }

    /// Selects the types that code at a location can mean. All of `types` have the same name. The result contains the
    /// types of the location's unit or, if the unit contains none of `types`, the types of the location's file.
    pub(crate) fn known_at(&self, place: CodePlace, types: &[TypeId], entries: &ClassEntries) -> Vec<TypeId> {
        let known_in = |range: Range<usize>| -> Vec<TypeId> {
            types.iter().copied().filter(|id| entries.has_any_in(self.same_as(*id), &range)).collect()
        };
        let in_unit = place.unit.map(|start| known_in(self.types_of_unit(start))).unwrap_or_default();
        if !in_unit.is_empty() {
            return in_unit;
        }
        let UnitTable { files, .. } = &self.units;
        let end = files.get(place.file + 1).map_or(self.types.len(), |next| next.first_type);
        known_in(files[place.file].first_type..end)
    }

    fn types_of_unit(&self, start: u64) -> Range<usize> {
        let starts = &self.units.starts;
        let index_of = |offset: u64| self.offsets.partition_point(|of| *of < offset);
        let next = starts.get(starts.partition_point(|of| *of <= start));
        index_of(start)..next.map_or(self.types.len(), |next| index_of(*next))
    }
}
