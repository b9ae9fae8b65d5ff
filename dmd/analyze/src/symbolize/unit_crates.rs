//! Finds the crates of a file's compilation units. If debug information has only lines, the crates complete the names
//! of inlined functions.

use std::collections::BTreeMap;

use gimli::{Dwarf, Reader as _, Unit};

use super::bounds::BoundedSlice;
use crate::names::{CrateFolders, UnitName, segments};

/// The maximum number of functions of a unit that are checked for its crate.
const MOST_FUNCTIONS: usize = 64;

/// Finds the crates of all units. `file` and `symbol` return the source file and the full name of the function at an
/// address.
///
/// A unit's name contains its crate, unless rustc compiled incrementally. In that case, the crate's name is the start
/// of the symbol of a function in the unit. Only functions with a source file in the crate's folder count, because the
/// unit also has generic functions of other crates.
pub(super) fn crates(
    dwarf: &Dwarf<BoundedSlice<'_>>,
    file: impl Fn(u64) -> Option<String>,
    symbol: impl Fn(u64) -> Option<String>,
) -> CrateFolders {
    let mut named = Vec::new();
    let mut unnamed: BTreeMap<String, Vec<Unit<BoundedSlice<'_>>>> = BTreeMap::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let text =
            |text: &Option<BoundedSlice<'_>>| Some(text.as_ref()?.to_string_lossy().ok()?.into_owned());
        let (Some(name), Some(folder)) = (text(&unit.name), text(&unit.comp_dir)) else { continue };
        let Some(UnitName { root, of_crate }) = UnitName::parse(&name, &folder) else { continue };
        match of_crate {
            Some(of_crate) => named.push((root, of_crate)),
            None => unnamed.entry(root).or_default().push(unit),
        }
    }
    for (root, units) in unnamed {
        let crate_at = |address: u64| {
            let is_of_root = file(address).is_some_and(|file| file.starts_with(&root));
            let name = symbol(address).filter(|_| is_of_root)?;
            match *segments(&name) {
                [first, _, ..] if !first.starts_with('<') => Some(first.to_owned()),
                _ => None,
            }
        };
        let found = units.iter().find_map(|unit| functions(dwarf, unit).into_iter().find_map(crate_at));
        named.extend(found.map(|of_crate| (root.clone(), of_crate)));
    }
    CrateFolders::new(named)
}

/// The addresses of the first functions of a unit.
fn functions(dwarf: &Dwarf<BoundedSlice<'_>>, unit: &Unit<BoundedSlice<'_>>) -> Vec<u64> {
    let mut found = Vec::new();
    let Ok(mut entries) = unit.entries_raw(None) else { return found };
    while !entries.is_empty() && found.len() < MOST_FUNCTIONS {
        let Ok(abbreviation) = entries.read_abbreviation() else { return found };
        let Some(abbreviation) = abbreviation else { continue };
        if abbreviation.tag() != gimli::DW_TAG_subprogram {
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                return found;
            }
            continue;
        }
        for specification in abbreviation.attributes() {
            let Ok(attribute) = entries.read_attribute(*specification) else { return found };
            if attribute.name() == gimli::DW_AT_low_pc
                && let Ok(Some(address)) = dwarf.attr_address(unit, attribute.value())
            {
                found.push(address);
            }
        }
    }
    found
}
