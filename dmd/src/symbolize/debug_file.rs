//! Debug information of one program or library: functions with inlined calls, lines, and the types that
//! a generic function was made for.

use std::borrow::Cow;
use std::collections::HashMap;

use addr2line::{Context, demangle_auto};
use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, DwarfSections, EndianSlice, RunTimeEndian,
    SectionId, Unit, UnitOffset, UnitRef,
};
use memmap2::Mmap;
use object::{Object as _, ObjectSection as _, SymbolMap, SymbolMapName};

use super::binary::Binary;
use super::map::map;

type Slice<'s> = EndianSlice<'s, RunTimeEndian>;

/// The files of a [`Binary`], in memory.
pub(super) struct Maps {
    debug: Mmap,
    symbols: Option<Mmap>,
    supplement: Option<Mmap>,
}

impl Maps {
    pub(super) fn open(binary: &Binary) -> Result<Self, String> {
        let map = |path: &std::path::PathBuf| map(path).map_err(|error| error.to_string());
        Ok(Self {
            debug: map(&binary.debug)?,
            symbols: binary.symbols.as_ref().map(map).transpose()?,
            supplement: binary.supplement.as_ref().map(map).transpose()?,
        })
    }
}

/// Their parts that matter, shared by threads.
pub(super) struct Sections<'m> {
    dwarf: DwarfSections<Cow<'m, [u8]>>,
    supplement: Option<DwarfSections<Cow<'m, [u8]>>>,
    symbols: Vec<SymbolMap<SymbolMapName<'m>>>,
    endian: RunTimeEndian,
}

impl<'m> Sections<'m> {
    pub(super) fn of(maps: &'m Maps) -> Result<Self, String> {
        let parse = |map: &'m Mmap| object::File::parse(&**map).map_err(|error| error.to_string());
        let debug = parse(&maps.debug)?;
        let supplement = maps.supplement.as_ref().map(parse).transpose()?;
        let symbols = maps.symbols.as_ref().map(parse).transpose()?;
        let endian = if debug.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        Ok(Self {
            dwarf: sections(&debug)?,
            supplement: supplement.as_ref().map(sections).transpose()?,
            symbols: [Some(&debug), symbols.as_ref()]
                .into_iter()
                .flatten()
                .map(|file| file.symbol_map())
                .collect(),
            endian,
        })
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let name = self.symbols.iter().find_map(|symbols| symbols.containing(address))?.name();
        Some(demangle_auto(name.into(), None).into_owned())
    }
}

fn sections<'m>(file: &object::File<'m>) -> Result<DwarfSections<Cow<'m, [u8]>>, String> {
    DwarfSections::load(|id: SectionId| {
        let data = file.section_by_name(id.name()).map(|section| section.uncompressed_data()).transpose()?;
        Ok(data.unwrap_or_default())
    })
    .map_err(|error: object::Error| error.to_string())
}

/// What a thread needs to look places of one file up.
pub(super) struct DebugFile<'s> {
    sections: &'s Sections<'s>,
    context: Context<Slice<'s>>,
    /// Units that others refer to, by where they start.
    units: HashMap<DebugInfoOffset, Option<Unit<Slice<'s>>>>,
    /// Where all units start.
    starts: Vec<DebugInfoOffset>,
}

/// A call, and where it is.
pub(super) struct Call {
    pub(super) function: Option<String>,
    pub(super) place: Option<(String, Option<u32>)>,
}

impl<'s> DebugFile<'s> {
    pub(super) fn new(sections: &'s Sections<'s>) -> Result<Self, String> {
        let slice = |bytes: &'s Cow<'_, [u8]>| EndianSlice::new(bytes, sections.endian);
        let mut dwarf = sections.dwarf.borrow_with_sup(sections.supplement.as_ref(), slice);
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let context = Context::from_dwarf(dwarf).map_err(|error| error.to_string())?;
        Ok(Self { sections, context, units: HashMap::new(), starts: Vec::new() })
    }

    /// The function at an address and those it was inlined into, innermost first. Damaged debug
    /// information is as good as none.
    pub(super) fn calls(&mut self, address: u64) -> Vec<Call> {
        let mut calls = Vec::new();
        let Self { sections, context, units, starts } = self;
        let unit = context.find_dwarf_and_unit(address).skip_all_loads();
        if let Ok(mut frames) = context.find_frames(address).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let function = frame.function.as_ref().and_then(|function| {
                    let name = function.demangle().ok()?.into_owned();
                    let raw = function.raw_name().ok()?;
                    let own = match (unit, frame.dw_die_offset) {
                        // Names of this kind do not tell the types that a function was made for.
                        (Some(unit), Some(at)) if raw.starts_with("_ZN") => own_name(unit, at, units, starts),
                        _ => None,
                    };
                    Some(with_types(name, own))
                });
                let place =
                    frame.location.and_then(|location| Some((location.file?.to_owned(), location.line)));
                calls.push(Call { function: function.or_else(|| sections.symbol(address)), place });
            }
        }
        calls.retain(|call| call.function.is_some() || call.place.is_some());
        if calls.is_empty()
            && let Some(function) = sections.symbol(address)
        {
            calls.push(Call { function: Some(function), place: None });
        }
        calls
    }
}

/// `alloc::vec::Vec<T,A>::push` and `push<my::Entry, Global>` are one function.
fn with_types(name: String, own: Option<String>) -> String {
    let Some(own) = own else { return name };
    let Some((plain, _)) = own.split_once('<') else { return name };
    match name.strip_suffix(plain) {
        Some(path) if path.ends_with("::") => format!("{path}{own}"),
        _ => name,
    }
}

/// `DW_AT_name` of a function, which may be where another entry of perhaps another unit refers to.
fn own_name<'s>(
    unit: UnitRef<'_, Slice<'s>>,
    at: UnitOffset,
    units: &mut HashMap<DebugInfoOffset, Option<Unit<Slice<'s>>>>,
    starts: &mut Vec<DebugInfoOffset>,
) -> Option<String> {
    let dwarf = unit.dwarf;
    let mut at = at;
    let mut other: Option<DebugInfoOffset> = None;
    // An inlined call refers to a function, and that to its declaration.
    for _ in 0..8 {
        let unit = match other {
            None => unit,
            Some(start) => UnitRef::new(dwarf, units.get(&start)?.as_ref()?),
        };
        let entry = unit.entry(at).ok()?;
        if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
            return Some(unit.attr_string(name).ok()?.to_string_lossy().into_owned());
        }
        let next = entry
            .attr_value(gimli::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
        match next {
            AttributeValue::UnitRef(next) => at = next,
            AttributeValue::DebugInfoRef(next) => {
                if starts.is_empty() {
                    let mut headers = dwarf.units();
                    while let Ok(Some(header)) = headers.next() {
                        starts.extend(header.debug_info_offset());
                    }
                }
                let start = *starts.get(starts.partition_point(|start| start.0 <= next.0).checked_sub(1)?)?;
                let unit = units.entry(start).or_insert_with(|| {
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
