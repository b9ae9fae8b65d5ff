//! Debug information of one program or library: functions with their inlined calls, lines, and the types of generic
//! functions.

use std::borrow::Cow;
use std::collections::HashMap;

use addr2line::Context;
use gimli::{AbbreviationsCacheStrategy, DwarfSections, DwoId, RunTimeEndian, SectionId};
use object::{Object as _, ObjectSection as _, SymbolMap, SymbolMapName};

use super::allowance::{ByteAllowance, READ, unpacked_size};
use super::binary::BinaryFiles;
use super::bounds::{BoundedSlice, ReadingBounds, ReadingStack};
use super::map::MappedFile;
use super::name::{LONGEST_NAME, cut, demangle, is_cut};
use super::scopes::ScopeNames;
use super::source_names::SourceNames;
use super::split::{SplitPlaces, SplitStorage, SplitUnits};
use super::{SymbolBound, allocator_calls, unit_crates};
use crate::dump::CallFrame;
use crate::names::{CrateFolders, is_own, segments};

/// The files of a [`BinaryFiles`], mapped into memory.
pub(super) struct MappedFiles {
    debug: MappedFile,
    symbols: Option<MappedFile>,
    supplement: Option<MappedFile>,
    /// The limit that the unpacked debug information would exceed; `None` if it fits.
    too_large: Option<SymbolBound>,
}

impl MappedFiles {
    pub(super) fn open(binary: &BinaryFiles, unpacking: &ByteAllowance) -> Result<Self, String> {
        let map = |path: &std::path::PathBuf| MappedFile::open(path).map_err(|error| error.to_string());
        let debug = map(&binary.debug)?;
        let supplement = binary.supplement.as_ref().map(map).transpose()?;
        let sizes = [Some(&debug), supplement.as_ref()].into_iter().flatten().map(|map| {
            object::File::parse(&**map).map_or(0, |file| unpacked_size(&file, READ, |id| Some(id.name())))
        });
        let fits = unpacking.take(sizes.fold(0, u64::saturating_add));
        Ok(Self {
            debug,
            symbols: binary.symbols.as_ref().map(map).transpose()?,
            supplement,
            too_large: (!fits).then_some(SymbolBound::Unpacked(unpacking.most())),
        })
    }
}

/// The parts of the files that the look-up needs. All threads share them.
pub(super) struct SymbolSections<'m> {
    dwarf: DwarfSections<Cow<'m, [u8]>>,
    supplement: Option<DwarfSections<Cow<'m, [u8]>>>,
    symbols: Vec<SymbolMap<SymbolMapName<'m>>>,
    endian: RunTimeEndian,
    too_large: Option<SymbolBound>,
}

impl<'m> SymbolSections<'m> {
    pub(super) fn read(maps: &'m MappedFiles) -> Result<Self, String> {
        let parse = |map: &'m MappedFile| object::File::parse(&**map).map_err(|error| error.to_string());
        let debug = parse(&maps.debug)?;
        let supplement = maps.supplement.as_ref().map(parse).transpose()?;
        let symbols = maps.symbols.as_ref().map(parse).transpose()?;
        let endian = if debug.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let sections = |file: &object::File<'m>| match maps.too_large {
            None => sections(file),
            Some(_) => Ok(DwarfSections::default()),
        };
        Ok(Self {
            dwarf: sections(&debug)?,
            supplement: supplement.as_ref().map(sections).transpose()?,
            symbols: [Some(&debug), symbols.as_ref()]
                .into_iter()
                .flatten()
                .map(|file| file.symbol_map())
                .collect(),
            endian,
            too_large: maps.too_large,
        })
    }

    /// The name of the function at an address: the mangled name, and a readable one.
    fn symbol(&self, address: u64) -> Option<(&'m str, String)> {
        let name = self.symbols.iter().find_map(|symbols| symbols.containing(address))?.name();
        Some((name, demangle(name).unwrap_or_else(|| cut(name.to_owned()))))
    }
}

fn sections<'m>(file: &object::File<'m>) -> Result<DwarfSections<Cow<'m, [u8]>>, String> {
    DwarfSections::load(|id: SectionId| {
        let section =
            Some(id.name()).filter(|_| READ.contains(&id)).and_then(|name| file.section_by_name(name));
        let data = section.map(|section| section.uncompressed_data()).transpose()?;
        Ok(data.unwrap_or_default())
    })
    .map_err(|error: object::Error| error.to_string())
}

/// The state of one thread for look-ups in one file.
pub(super) struct DebugFile<'s> {
    sections: &'s SymbolSections<'s>,
    context: Context<BoundedSlice<'s>>,
    split: SplitUnits<'s>,
    bounds: &'s ReadingBounds,
    /// The names of functions: of the program's own units (`None`), and of each split unit.
    known: HashMap<Option<u64>, FileScopes<'s>>,
    system_names: bool,
    sources: SourceNames,
}

#[derive(Default)]
struct FileScopes<'s> {
    names: ScopeNames<'s>,
    crates: Option<CrateFolders>,
}

/// The calls at a place.
#[derive(Default)]
pub(super) struct CallsAt {
    /// The calls, innermost first.
    pub(super) calls: Vec<InlineCall>,
    /// The missing file that may contain more of the calls.
    pub(super) missing: Option<String>,
    /// The limit that was exceeded. Calls may be missing because of it.
    pub(super) bound: Option<SymbolBound>,
}

/// The maximum number of calls at a place. If a place has more calls, the look-up keeps the innermost calls, and the
/// function into which they were inlined.
const MOST_CALLS: usize = 256;

/// A call and its place.
#[derive(Debug, Default)]
pub(super) struct InlineCall {
    function: Option<String>,
    system_name: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    inlined: bool,
    in_allocator: bool,
}

impl InlineCall {
    /// The frame of the call, for an offset of a module.
    pub(super) fn frame<'t>(&'t self, module: &'t str, offset: u64) -> CallFrame<'t> {
        CallFrame {
            function: self.function.as_deref(),
            system_name: self.system_name.as_deref(),
            file: self.file.as_deref(),
            line: self.line,
            column: self.column,
            module: Some(module),
            offset: Some(offset),
            inlined: self.inlined,
            in_allocator: self.in_allocator,
        }
    }
}

impl<'s> DebugFile<'s> {
    pub(super) fn new(
        sections: &'s SymbolSections<'s>,
        places: &'s SplitPlaces,
        storage: &'s SplitStorage,
        unpacking: &'s ByteAllowance,
        stack: ReadingStack,
    ) -> Result<Self, String> {
        let bounds = storage.bounds(ReadingBounds::new(stack));
        let slice = |bytes: &'s Cow<'_, [u8]>| BoundedSlice::section(bytes, sections.endian, bounds);
        let mut dwarf = sections.dwarf.borrow_with_sup(sections.supplement.as_ref(), slice);
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let context = match (Context::from_dwarf(dwarf), bounds.reached()) {
            (Ok(context), None) => context,
            (Err(error), None) => return Err(error.to_string()),
            // Continue with the symbols, without debug information.
            (_, Some(_)) => {
                let empty = |_| Ok::<_, gimli::Error>(BoundedSlice::section(&[], sections.endian, bounds));
                let nothing = gimli::Dwarf::load(empty).and_then(Context::from_dwarf);
                nothing.map_err(|error| error.to_string())?
            }
        };
        let split = SplitUnits::new(storage, places, bounds, unpacking);
        Ok(Self {
            sections,
            context,
            split,
            bounds,
            known: HashMap::new(),
            system_names: false,
            sources: SourceNames::default(),
        })
    }

    /// Sets whether calls also keep the mangled names of functions, and the sources that complete names.
    pub(super) fn with_names(mut self, system_names: bool, sources: SourceNames) -> Self {
        (self.system_names, self.sources) = (system_names, sources);
        self
    }

    /// The function at an address, and the functions that were inlined there, innermost first. Damaged debug
    /// information counts as missing.
    pub(super) fn calls(&mut self, address: u64) -> CallsAt {
        let mut calls = Vec::new();
        let Self { sections, context, split, bounds, known, system_names, sources } = self;
        let system_name = |raw: &str, readable: &str| {
            (*system_names && raw != readable && raw.len() <= LONGEST_NAME).then(|| raw.to_owned())
        };
        bounds.add_place();
        let mut bound = None;
        for (load, loaded) in context.preload_units(address) {
            // Damaged units count as missing.
            let _ = loaded(split.load(&load));
        }
        let unit = context.find_dwarf_and_unit(address).skip_all_loads();
        let number = unit.and_then(|unit| unit.dwo_id);
        let missing = number.and_then(|number: DwoId| split.missing(number));
        let FileScopes { names, crates } = known.entry(number.map(|number| number.0)).or_default();
        if let Ok(mut frames) = context.find_frames(address).skip_all_loads() {
            let mut kept = Vec::new();
            while let Ok(Some(frame)) = frames.next() {
                if kept.len() == MOST_CALLS {
                    kept.pop();
                    bound = Some(SymbolBound::InlinedCalls);
                }
                kept.push(frame);
            }
            // The function's own name, if debug information does not contain its path.
            let mut own = None;
            for frame in kept {
                own = None;
                let location = frame.location.as_ref();
                let file = location.and_then(|location| location.file).map(str::to_owned);
                let line = location.filter(|_| file.is_some()).and_then(|location| location.line);
                let column = location.filter(|_| line.is_some()).and_then(|location| location.column);
                let mut mangled = None;
                let function = frame.function.as_ref().and_then(|function| {
                    let raw = function.raw_name().ok()?;
                    let readable = demangle(&raw);
                    mangled = readable.as_deref().and_then(|readable| system_name(&raw, readable));
                    // Rust's newer mangled names are complete. A mangled name of C++ contains the path if the library
                    // can parse the name.
                    let lacking = readable.is_none() || raw.starts_with("_ZN") && is_rust(&raw);
                    let entry = match (unit, frame.dw_die_offset) {
                        (Some(unit), Some(at)) if lacking => names.name_at(unit, at),
                        _ => None,
                    };
                    let name = full_name(&raw, readable, entry);
                    let rust = function.language == Some(gimli::DW_LANG_Rust);
                    if !rust || segments(&name).len() > 1 {
                        return Some(async_function(name));
                    }
                    let crates = crates.get_or_insert_with(|| {
                        let Some(unit) = unit else { return CrateFolders::default() };
                        let file = |address| {
                            let location = context.find_location(address).ok().flatten();
                            location.and_then(|location| location.file).map(str::to_owned)
                        };
                        let symbol = |address| sections.symbol(address).map(|(_, readable)| readable);
                        unit_crates::crates(unit.dwarf, file, symbol)
                    });
                    let module = file.as_ref().and_then(|file| crates.module(file));
                    let around = match (&file, line) {
                        // Names of library functions stay without their owner types, because the rules about types
                        // expect that.
                        (Some(file), Some(line)) if name.starts_with('{') || is_own(file) => {
                            sources.path(file, line, &name)
                        }
                        _ => None,
                    };
                    let path = |below: &str| match &module {
                        Some(module) => format!("{module}::{below}"),
                        None => below.to_owned(),
                    };
                    let path = match around {
                        Some(around) => async_function(path(&around)),
                        None => path(&name),
                    };
                    own = Some(name);
                    Some(path)
                });
                let function = function.or_else(|| {
                    let (raw, readable) = sections.symbol(address)?;
                    mangled = system_name(raw, &readable);
                    Some(readable)
                });
                let inlined = true;
                calls.push(InlineCall {
                    function,
                    system_name: mangled,
                    file,
                    line,
                    column,
                    inlined,
                    ..InlineCall::default()
                });
            }
            if let Some(call) = calls.last_mut() {
                call.inlined = false;
            }
            // The function into which the other functions were inlined has a symbol that contains its type.
            if let (Some(own), Some(call)) = (own, calls.last_mut())
                && let Some((raw, mangled)) = sections.symbol(address)
                && let Some(name) = by_symbol(raw, &mangled, &own)
            {
                call.function = Some(async_function(name));
                call.system_name = call.system_name.take().or_else(|| system_name(raw, &mangled));
            }
        }
        calls.retain(|call| call.function.is_some() || call.file.is_some());
        if calls.is_empty()
            && let Some((raw, function)) = sections.symbol(address)
        {
            let system_name = system_name(raw, &function);
            calls.push(InlineCall { function: Some(function), system_name, ..InlineCall::default() });
        }
        let inside = allocator_calls::count(calls.iter().map(|call| call.function.as_deref()));
        for (at, call) in calls.iter_mut().enumerate() {
            call.in_allocator = at < inside;
            call.function = call.function.take().map(cut);
            call.file = call.file.take().map(cut);
            if call.function.as_deref().is_some_and(is_cut) {
                bound = Some(SymbolBound::NameLength);
            }
        }
        CallsAt { calls, missing, bound: bounds.reached().or(sections.too_large).or(bound) }
    }
}

/// The name of the async function whose body has this name: `app::load<u8>` for `app::load::{async_fn#0}<u8>`. A name
/// without a function between the crate and `{async_fn#0}` stays unchanged.
fn async_function(mut name: String) -> String {
    let code = match *segments(&name) {
        [_, _, .., last] if last.starts_with("{async_fn#") => last.len(),
        _ => return name,
    };
    let start = name.len() - code;
    let end = name[start..].find('}').map_or(name.len(), |end| start + end + 1);
    name.replace_range(start - "::".len()..end, "");
    name
}

/// Whether a mangled name is Rust's: older names of Rust end in a hash, and names of C++ have the same start.
fn is_rust(raw: &str) -> bool {
    let hash =
        raw.strip_suffix('E').and_then(|rest| rest.len().checked_sub(19).and_then(|at| rest.get(at..)));
    hash.is_some_and(|hash| hash.starts_with("17h") && hash[3..].bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The best name from a readable mangled name, and from the path and own name of an entry.
fn full_name(raw: &str, readable: Option<String>, entry: Option<(String, String)>) -> String {
    let Some((path, own)) = entry else { return readable.unwrap_or_else(|| raw.to_owned()) };
    let plain = own.split('<').next().unwrap_or(&own);
    if let Some(mangled) = readable {
        if let Some(before) = mangled.strip_suffix("{{closure}}").filter(|_| plain.starts_with("{async_fn#"))
        {
            return format!("{before}{own}");
        }
        // Only the mangled name contains the types of a trait implementation. `path` contains a number instead.
        let before = mangled.strip_suffix(plain).filter(|before| before.ends_with("::"));
        return match before {
            Some(before) if path.contains("{impl#") || !path.contains('<') => format!("{before}{own}"),
            Some(_) => method(&path, plain, &own),
            None => mangled,
        };
    }
    if path.is_empty() { own } else { method(&path, plain, &own) }
}

/// The full name of a function whose entry has only the last part. `None` if the symbol belongs to another function,
/// for example because the linker merged functions with equal code.
fn by_symbol(raw: &str, mangled: &str, own: &str) -> Option<String> {
    let plain = own.split('<').next().unwrap_or(own);
    if !raw.starts_with("_ZN") {
        // Newer mangled names are complete. Their types are separate parts. They name the code of an async function as
        // a closure.
        let last = segments(mangled).into_iter().rfind(|part| !part.starts_with('<'))?;
        let number = plain.split_once('#').filter(|_| plain.starts_with('{'));
        let is_coded = number.is_some_and(|(_, number)| last.strip_prefix("{closure#") == Some(number));
        let at = mangled.rfind(last).filter(|_| raw.starts_with("_R") && (last == plain || is_coded))?;
        return Some(format!("{}{plain}{}", &mangled[..at], &mangled[at + last.len()..]));
    }
    // Older mangled names do not number closures. They name the code of an async function as a closure.
    let last = if plain.starts_with('{') { "{{closure}}" } else { plain };
    let before = mangled.strip_suffix(last).filter(|before| before.ends_with("::"))?;
    Some(format!("{before}{own}"))
}

/// Removes types that are already in the path, as in `Vec<my::Entry, Global>::push<my::Entry, Global>`.
fn method(path: &str, plain: &str, own: &str) -> String {
    let types = &own[plain.len()..];
    let twice = !types.is_empty() && path.ends_with(types);
    format!("{path}::{}", if twice { plain } else { own })
}
