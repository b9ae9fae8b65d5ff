//! Decides, for each allocator in a file, whether all references to its functions can be redirected.

use core::fmt;

use crate::elf::{ElfFile, SymbolTable};
use crate::encodings::x86_64;
use crate::families::{AllocatorFamily, AllocatorFunction, FAMILIES, FunctionCall, SHIMS};
use crate::references::{CodeMatch, CodeSegment, LoadedImage, Reference, Targets};
use crate::symbols::{self, AllocatorSymbols, EnclosingFunction, FamilyFunctions};

/// A function whose references a plan redirects.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFunction {
    /// The function.
    pub function: &'static AllocatorFunction,
    /// Its address in the file.
    pub address: u64,
}

/// All references to the functions of one allocator.
#[derive(Debug)]
pub struct RedirectPlan {
    /// The functions.
    pub functions: Vec<PlannedFunction>,
    /// The references. Each has the index of its function.
    pub references: Vec<Reference>,
    /// The address of the function that returns the usable size of a live block.
    pub usable_size: Option<u64>,
    /// Whether the functions are Rust's own. The allocator behind them may call `malloc`.
    pub is_shims: bool,
}

/// The reason why the blocks of an allocator cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The file has no symbol table.
    Stripped,
    /// Two functions have this name.
    Ambiguous(&'static str),
    /// This function is not in the code of the file.
    OutsideOfCode(&'static str),
    /// The program calls this function, whose effect on blocks is unknown.
    Unsupported(&'static str),
    /// No reference to a function that frees blocks is left: they were compiled into their callers.
    FreesInlined,
    /// It is unclear whether a part of the code is a call of this function.
    UnclearCode(&'static str),
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stripped => f.write_str(
                "the program has no symbol table; build it without strip = \"symbols\", or install its debug file",
            ),
            Self::Ambiguous(name) => write!(f, "two functions have the name {name}; wrap the allocator in dmd::Dmd"),
            Self::OutsideOfCode(name) => {
                write!(f, "{name} is not in the program's code; wrap the allocator in dmd::Dmd")
            }
            Self::Unsupported(name) => {
                write!(f, "the program calls {name}, whose effect on blocks is unknown; wrap the allocator in dmd::Dmd")
            }
            Self::FreesInlined => f.write_str(
                "the functions that free blocks are inlined; build without lto = \"fat\", or wrap the allocator in dmd::Dmd",
            ),
            Self::UnclearCode(name) => {
                write!(f, "it is unclear whether the code calls {name}; wrap the allocator in dmd::Dmd")
            }
        }
    }
}

/// An allocator in a file, and either the plan for its functions or the reason why they cannot be redirected.
#[derive(Debug)]
pub struct AllocatorPlan {
    /// The allocator.
    pub family: &'static AllocatorFamily,
    /// The plan, or the reason why there is none.
    pub plan: Result<RedirectPlan, RefusalReason>,
    /// Whether the program is written in Rust.
    pub is_rust: bool,
}

/// Finds the allocators of a file that the program uses. `symbols` is the file itself, or its debug file. `image` is
/// the file as the loader loads it. Without a symbol table, an allocator is recognized by its texts.
pub fn plan_redirects(
    file: &ElfFile<'_>,
    symbols: &ElfFile<'_>,
    image: &dyn LoadedImage,
) -> Vec<AllocatorPlan> {
    let Some(table) = symbols.symbols() else { return by_text(file) };
    let found = AllocatorSymbols::find(&table);
    let mut plans = Vec::new();
    for (family, functions) in FAMILIES.iter().zip(&found.families).take(SHIMS) {
        plans.extend(plan_family(family, functions, &table, image, found.is_rust));
    }
    if plans.is_empty() && !found.has_system_shims {
        plans.extend(plan_family(&FAMILIES[SHIMS], &found.families[SHIMS], &table, image, true));
    }
    plans
}

/// Recognizes the allocators of a file without symbols.
fn by_text(file: &ElfFile<'_>) -> Vec<AllocatorPlan> {
    let is_rust = file.contains_text(b"/rustc/");
    let found = FAMILIES.iter().filter(|family| family.text.is_some_and(|text| file.contains_text(text)));
    found.map(|family| AllocatorPlan { family, plan: Err(RefusalReason::Stripped), is_rust }).collect()
}

/// The plan for a family. `None` if the program does not use it.
fn plan_family(
    family: &'static AllocatorFamily,
    found: &FamilyFunctions,
    table: &SymbolTable<'_>,
    image: &dyn LoadedImage,
    is_rust: bool,
) -> Option<AllocatorPlan> {
    let allocates = |index: u16| !matches!(family.functions[usize::from(index)].call, FunctionCall::Free);
    if !found.functions.iter().any(|(index, _)| allocates(*index)) {
        return None;
    }
    let plan = references_of(family, found, table, image).transpose()?;
    Some(AllocatorPlan { family, plan, is_rust })
}

fn references_of(
    family: &'static AllocatorFamily,
    found: &FamilyFunctions,
    table: &SymbolTable<'_>,
    image: &dyn LoadedImage,
) -> Result<Option<RedirectPlan>, RefusalReason> {
    let name = |index: u16| family.functions[usize::from(index)].name;
    // Several names may have one address.
    let mut functions: Vec<PlannedFunction> = Vec::new();
    for (index, address) in &found.functions {
        if functions.iter().all(|known| known.address != *address) {
            functions.push(PlannedFunction {
                function: &family.functions[usize::from(*index)],
                address: *address,
            });
        }
    }
    let mut addresses: Vec<u64> = functions.iter().map(|function| function.address).collect();
    addresses.extend(found.unsupported.iter().map(|(_, address)| address));
    let targets = Targets::new(&addresses);
    let mut references = targets.words(image);
    let code = image.code();
    let matches = targets.code(image);
    let positions: Vec<u64> = matches.iter().map(|found| found.reference.at).collect();
    for (found, enclosing) in matches.iter().zip(symbols::enclosing(table, &positions)) {
        if family.own_code.iter().any(|own| enclosing.name.starts_with(own.as_bytes())) {
            continue;
        }
        if !is_clear(&code, found, enclosing) {
            let function = functions.get(usize::from(found.reference.function));
            return Err(RefusalReason::UnclearCode(function.map_or("", |function| function.function.name)));
        }
        references.push(found.reference);
    }
    if references.is_empty() {
        return Ok(None);
    }
    if let Some(index) = found.ambiguous {
        return Err(RefusalReason::Ambiguous(name(index)));
    }
    let is_in_code = |address: u64| {
        code.iter().any(|segment| address.wrapping_sub(segment.address) < segment.bytes.len() as u64)
    };
    if let Some(outside) = functions.iter().find(|function| !is_in_code(function.address)) {
        return Err(RefusalReason::OutsideOfCode(outside.function.name));
    }
    for reference in &references {
        if let Some(unsupported) = usize::from(reference.function).checked_sub(functions.len()) {
            let index = found.unsupported.get(unsupported).map_or(0, |(index, _)| usize::from(*index));
            return Err(RefusalReason::Unsupported(family.unsupported[index]));
        }
    }
    let mut used =
        references.iter().map(|reference| functions[usize::from(reference.function)].function.call);
    if !used.any(|call| call == FunctionCall::Free) {
        return Err(RefusalReason::FreesInlined);
    }
    let is_shims = core::ptr::eq(family, &raw const FAMILIES[SHIMS]);
    Ok(Some(RedirectPlan { functions, references, usable_size: found.usable_size, is_shims }))
}

/// Whether a match in code is certainly an instruction.
fn is_clear(code: &[CodeSegment<'_>], found: &CodeMatch, enclosing: EnclosingFunction<'_>) -> bool {
    let Some(end) = found.decoded_end else { return true };
    if enclosing.name.is_empty() {
        return false;
    }
    let function = code.iter().find_map(|segment| {
        let start = enclosing.start.checked_sub(segment.address)?;
        segment.bytes.get(usize::try_from(start).ok()?..)
    });
    let Ok(end) = usize::try_from(end - enclosing.start) else { return false };
    function.is_some_and(|function| x86_64::is_instruction_end(function, end))
}
