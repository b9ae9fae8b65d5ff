//! Finds the full names of functions from the namespaces and types that contain their entries.
//!
//! Older mangled names lack the types of a generic function, and inlined functions have no mangled name. The entries of
//! debug information contain these types and names. But an entry refers only to the entries inside of it, not to the
//! entry that contains it.

use std::collections::HashMap;

use gimli::{AttributeValue, DebugInfoOffset, Reader as _, Unit, UnitOffset, UnitRef};

use super::bounds::BoundedSlice;
use super::name::LONGEST_NAME;

/// The scopes of a unit.
struct UnitScopes<'s> {
    /// The name of each scope, and the index of the outer scope.
    scopes: Vec<(BoundedSlice<'s>, Option<u32>)>,
    /// The scope of each function, sorted by offset.
    functions: Vec<(UnitOffset, Option<u32>)>,
}

/// The units of a file that were read so far.
#[derive(Default)]
pub(super) struct ScopeNames<'s> {
    /// Units to which other units refer, by their start.
    units: HashMap<DebugInfoOffset, Option<Unit<BoundedSlice<'s>>>>,
    /// The starts of all units.
    starts: Vec<DebugInfoOffset>,
    scopes: HashMap<DebugInfoOffset, Option<UnitScopes<'s>>>,
}

impl<'s> ScopeNames<'s> {
    /// The name of the function at an entry, in two parts: its path, and its own name.
    pub(super) fn name_at(
        &mut self,
        unit: UnitRef<'_, BoundedSlice<'s>>,
        at: UnitOffset,
    ) -> Option<(String, String)> {
        let dwarf = unit.dwarf;
        let (mut at, mut other) = (at, None::<DebugInfoOffset>);
        // An inlined call refers to a function, and the function refers to its declaration.
        for _ in 0..8 {
            let unit = match other {
                None => unit,
                Some(start) => UnitRef::new(dwarf, self.units.get(&start)?.as_ref()?),
            };
            let entry = unit.entry(at).ok()?;
            if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
                let name = unit.attr_string(name).ok()?.to_string_lossy().ok()?.into_owned();
                let start = unit.header.debug_info_offset()?;
                let scopes = self.scopes.entry(start).or_insert_with(|| UnitScopes::read(unit)).as_ref()?;
                return Some((scopes.path(at), name));
            }
            let next = entry
                .attr_value(gimli::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
            match next {
                AttributeValue::UnitRef(next) => at = next,
                AttributeValue::DebugInfoRef(next) => {
                    if self.starts.is_empty() {
                        let mut headers = dwarf.units();
                        while let Ok(Some(header)) = headers.next() {
                            self.starts.extend(header.debug_info_offset());
                        }
                    }
                    let index = self.starts.partition_point(|start| start.0 <= next.0).checked_sub(1)?;
                    let start = *self.starts.get(index)?;
                    let unit = self.units.entry(start).or_insert_with(|| {
                        let header = dwarf.debug_info.header_from_offset(start).ok()?;
                        dwarf.unit(header).ok()
                    });
                    at = next.to_unit_offset(&unit.as_ref()?.header)?;
                    other = Some(start);
                }
                _ => return None,
            }
        }
        None
    }
}

impl<'s> UnitScopes<'s> {
    fn read(unit: UnitRef<'_, BoundedSlice<'s>>) -> Option<Self> {
        let mut found = Self { scopes: Vec::new(), functions: Vec::new() };
        // The entries that contain the current one, each with its depth and its scope.
        let mut around: Vec<(isize, Option<u32>)> = Vec::new();
        let mut entries = unit.entries_raw(None).ok()?;
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            while around.last().is_some_and(|(other, _)| *other >= depth) {
                around.pop();
            }
            let scope = around.last().and_then(|(_, scope)| *scope);
            let tag = abbreviation.tag();
            let is_scope = matches!(
                tag,
                gimli::DW_TAG_namespace
                    | gimli::DW_TAG_structure_type
                    | gimli::DW_TAG_class_type
                    | gimli::DW_TAG_enumeration_type
                    | gimli::DW_TAG_union_type
            );
            if !is_scope {
                if tag == gimli::DW_TAG_subprogram {
                    found.functions.push((offset, scope));
                }
                if abbreviation.has_children() {
                    around.push((depth, scope));
                }
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            let mut name = None;
            for specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(*specification).ok()?;
                if attribute.name() == gimli::DW_AT_name {
                    name = unit.attr_string(attribute.value()).ok();
                }
            }
            if abbreviation.has_children() {
                let inner = name.map(|name| {
                    found.scopes.push((name, scope));
                    found.scopes.len() as u32 - 1
                });
                around.push((depth, inner.or(scope)));
            }
        }
        Some(found)
    }

    /// The names of the scopes of a function, joined by `::`. If the text exceeds the maximum length of a name, the
    /// remaining outer names are left out.
    fn path(&self, at: UnitOffset) -> String {
        let index = self.functions.binary_search_by_key(&at, |(offset, _)| *offset);
        let mut scope = index.ok().and_then(|index| self.functions[index].1);
        let mut names = Vec::new();
        let mut length = 0;
        while let Some((name, around)) = scope.map(|index| &self.scopes[index as usize])
            && length <= LONGEST_NAME
        {
            let Ok(name) = name.to_string_lossy() else { break };
            length += name.len() + "::".len();
            names.push(name);
            scope = *around;
        }
        names.reverse();
        names.join("::")
    }
}
