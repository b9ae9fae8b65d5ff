//! Decides, for each allocator in a file, whether all references to its functions can be redirected.

use core::fmt;
use std::collections::BTreeSet;

use crate::elf::{ElfFile, Machine, Symbol, SymbolTable};
use crate::encodings::x86_64;
use crate::families::{AllocatorFamily, FAMILIES, SHIMS, base_name, library_function};
use crate::file_image::FileImage;
use crate::functions::{AllocatorFunction, FunctionCall};
use crate::references::{
    CodeMatch, CodeReference, CodeSegment, LoadedImage, Reference, ReferenceForm, Targets, function_code,
};
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
    /// The functions that the program's libraries call, too, in place of the C library's. Empty without `malloc`.
    pub for_libraries: Vec<ExportedFunction>,
}

/// A function that a program exports.
#[derive(Clone, Copy, Debug)]
pub struct ExportedFunction {
    /// The index among the plan's functions.
    pub function: u16,
    /// The name under which libraries find it.
    pub name: &'static str,
}

impl RedirectPlan {
    /// The number of functions to which the program refers.
    pub fn used_functions(&self) -> usize {
        let is_used = |index: &usize| self.references.iter().any(|at| usize::from(at.function) == *index);
        (0..self.functions.len()).filter(is_used).count()
    }
}

/// The name of an allocator's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorFunctionName {
    prefix: &'static str,
    name: &'static str,
}

impl fmt::Display for AllocatorFunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix)?;
        f.write_str(self.name)
    }
}

/// The reason why the blocks of an allocator cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The file has no symbol table.
    Stripped,
    /// Two functions have this name.
    Ambiguous(AllocatorFunctionName),
    /// This function is not in the code of the file.
    OutsideOfCode(AllocatorFunctionName),
    /// The program calls this function, whose effect on blocks is unknown.
    Unsupported(AllocatorFunctionName),
    /// Functions of the allocator were compiled into their callers: they cannot be hooked there.
    Inlined,
    /// The library exports this function, so other files may call it.
    Exported(AllocatorFunctionName),
    /// The program calls this function of a library, which hands out its blocks without the program.
    Imported(AllocatorFunctionName),
    /// It is unclear whether a part of the code calls this function.
    UnclearCode(AllocatorFunctionName),
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
            Self::Inlined => f.write_str(
                "its functions are inlined into their callers; wrap the allocator in dmd::Dmd, or build without optimization",
            ),
            Self::Exported(name) => {
                write!(f, "the library exports {name}, which other files may call; link the allocator into the program")
            }
            Self::Imported(name) => {
                write!(f, "the program calls {name} of a library; link the allocator into the program")
            }
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
    /// The plan, or the reason why the allocator cannot be hooked.
    pub plan: Result<RedirectPlan, RefusalReason>,
}

impl AllocatorPlan {
    /// Whether the program calls the allocator of a library.
    pub fn is_imported(&self) -> bool {
        matches!(self.plan, Err(RefusalReason::Imported(_)))
    }
}

impl fmt::Display for AllocatorPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_imported() { "a library" } else { "the program" };
        write!(f, "{} inside {place}: ", self.family.name)?;
        match &self.plan {
            Ok(plan) => {
                let (functions, references) = (plan.used_functions(), plan.references.len());
                let plural = |count: usize| if count == 1 { "" } else { "s" };
                write!(f, "its blocks are recorded, too ({functions} function{}, ", plural(functions))?;
                write!(f, "{references} reference{})", plural(references))
            }
            Err(reason) => write!(f, "{}: {reason}", self.family.gap()),
        }
    }
}

/// Finds the allocators in a file to whose functions the file refers. `symbols` is the file itself, or its debug file.
/// `image` is the file as the loader loads it. Without a symbol table, an allocator is recognized by its texts.
pub fn plan_redirects(
    file: &ElfFile<'_>,
    symbols: &ElfFile<'_>,
    image: &dyn LoadedImage,
) -> Vec<AllocatorPlan> {
    let mut plans = plan_linked(file, symbols, image);
    let imported: Vec<AllocatorPlan> = imported(file)
        .filter(|plan| plans.iter().all(|known| known.family.name != plan.family.name))
        .take(1)
        .collect();
    plans.extend(imported);
    plans
}

/// The allocators of libraries that a program calls by names that the C library does not have.
fn imported<'f>(file: &ElfFile<'f>) -> impl Iterator<Item = AllocatorPlan> + use<'f> {
    let symbols = file.program_symbols();
    let names = symbols.into_iter().flat_map(SymbolTable::imported);
    names.filter(|name| library_function(name).is_none()).filter_map(|name| {
        FAMILIES.iter().take(SHIMS).find_map(|family| {
            let rest = name.strip_prefix(family.prefix.as_bytes())?;
            let function = family.functions.iter().find(|function| function.is_named(rest))?;
            let name = AllocatorFunctionName { prefix: family.prefix, name: function.name() };
            let allocates = function.call != FunctionCall::Free;
            allocates.then_some(AllocatorPlan { family, plan: Err(RefusalReason::Imported(name)) })
        })
    })
}

fn plan_linked(file: &ElfFile<'_>, symbols: &ElfFile<'_>, image: &dyn LoadedImage) -> Vec<AllocatorPlan> {
    let Some(table) = symbols.symbols() else { return by_text(file) };
    let mut found = AllocatorSymbols::find(&table);
    found.add_wrappers(&table, image);
    let mut plans = Vec::new();
    let exported = file.library_symbols().map(|table| AllocatorSymbols::find(&table));
    for (family, functions) in FAMILIES.iter().zip(&found.families).take(SHIMS) {
        plans.extend(plan_family(family, functions, &table, image));
    }
    if plans.is_empty() {
        // All functions of an allocator may be inlined into their callers.
        let families = FAMILIES.iter().zip(&found.families);
        let copies = families
            .filter(|(_, found)| found.is_marked && !found.has_allocation() && !found.copies.is_empty());
        let refused = copies.filter_map(|(family, found)| {
            let reason = references_of(family, found, &table, image).err()?;
            Some(AllocatorPlan { family, plan: Err(reason) })
        });
        plans.extend(refused.take(1));
    }
    let program_symbols = file.program_symbols();
    for plan in &mut plans {
        if let Ok(redirects) = &mut plan.plan {
            redirects.for_libraries = exported_functions(&redirects.functions, program_symbols.as_ref());
        }
        let exported = exported.iter().flat_map(|exported| exported.families.iter().zip(&FAMILIES));
        let mut exported = exported.filter(|(_, family)| core::ptr::eq(*family, plan.family));
        if let Some((function, _)) = exported.find_map(|(found, _)| found.functions.first()) {
            let name = AllocatorFunctionName { prefix: plan.family.prefix, name: function.name() };
            plan.plan = Err(RefusalReason::Exported(name));
        }
    }
    if plans.is_empty() && !found.has_system_shims && !calls_malloc(file, &table, image) {
        plans.extend(plan_family(&FAMILIES[SHIMS], &found.families[SHIMS], &table, image));
    }
    plans
}

/// The functions that a program exports under the names of the C library's functions.
fn exported_functions(
    functions: &[PlannedFunction],
    symbols: Option<&SymbolTable<'_>>,
) -> Vec<ExportedFunction> {
    let mut found = Vec::new();
    for symbol in symbols.iter().flat_map(|symbols| symbols.iter()) {
        let planned = functions.iter().position(|planned| planned.address == symbol.address);
        let Some(function) = planned else { continue };
        // A program may export functions that only its allocator has.
        let own = Some(functions[function].function).filter(|own| own.is_named(symbol.name));
        let exported = library_function(symbol.name).or(own);
        found.extend(
            exported.map(|exported| ExportedFunction { function: function as u16, name: exported.name() }),
        );
    }
    if found.iter().any(|exported| exported.name == "malloc") { found } else { Vec::new() }
}

/// The number of words of an image that hold the address of an allocator's function. While the loader still relocates a
/// file, the image in memory has fewer such words than the image of the file.
pub fn count_words(symbols: &ElfFile<'_>, image: &dyn LoadedImage) -> usize {
    let Some(table) = symbols.symbols() else { return 0 };
    let found = AllocatorSymbols::find(&table);
    let functions = found.families.iter().flat_map(|family| &family.functions);
    let addresses: Vec<u64> = functions.map(|(_, address)| *address).collect();
    Targets::new(&addresses).words(image).len()
}

/// Whether `__rust_alloc` calls `malloc` directly: then `malloc`'s hook records all blocks. With `lto`, the default
/// allocator is inlined into `__rust_alloc`, so the default allocator has no symbol any more.
fn calls_malloc(file: &ElfFile<'_>, table: &SymbolTable<'_>, image: &dyn LoadedImage) -> bool {
    let slots = FileImage::new(*file).imported_slots(b"malloc");
    shim_bodies(table, image)
        .any(|shim| shim.name == b"__rust_alloc" && shim.targets().any(|to| slots.contains(&to)))
}

/// The code of one of Rust's own functions.
struct ShimBody<'t, 'b> {
    name: &'t [u8],
    address: u64,
    code: &'b [u8],
}

impl ShimBody<'_, '_> {
    /// The addresses that the code calls, jumps to, or reads from.
    fn targets(&self) -> impl Iterator<Item = u64> {
        self.targets_in(self.code)
    }

    /// The addresses among them to which each call refers.
    fn targets_of_each_call(&self) -> impl Iterator<Item = u64> {
        self.targets_in(&self.code[..x86_64::straight_bytes(self.code)])
    }

    fn targets_in<'c>(&self, code: &'c [u8]) -> impl Iterator<Item = u64> + use<'c> {
        let address = self.address;
        let is_operand = |at: usize| {
            let before = |count: usize| at.checked_sub(count).and_then(|at| code.get(at)).copied();
            matches!((before(2), before(1)), (Some(0xff), Some(0x15 | 0x25)))
                || x86_64::distance_form(code, at).is_some()
        };
        code.windows(4).enumerate().filter(move |(at, _)| is_operand(*at)).map(move |(at, bytes)| {
            x86_64::target([bytes[0], bytes[1], bytes[2], bytes[3]], address.wrapping_add(at as u64))
        })
    }

    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.code.len() as u64
    }
}

fn shim_bodies<'t, 'b>(
    table: &'t SymbolTable<'_>,
    image: &'b dyn LoadedImage,
) -> impl Iterator<Item = ShimBody<'t, 'b>> {
    let code = image.code();
    table.iter().filter(|symbol| symbol.is_function).filter_map(move |symbol| {
        let name = symbols::plain_name(symbol.name);
        if !name.starts_with(b"__rust_") {
            return None;
        }
        let code = function_code(&code, &symbol)?;
        Some(ShimBody { name, address: symbol.address, code })
    })
}

/// Whether other code may contain copies of Rust's functions for allocating and freeing. A copy refers to the same
/// addresses as the function: to functions that the allocator calls, or to the allocator's data. Only the addresses to
/// which each call refers count: a copy for one alignment may lack a branch of the function. A crate that defines its
/// allocator may inline the functions even without link-time optimization.
fn may_be_inlined(table: &SymbolTable<'_>, image: &dyn LoadedImage) -> bool {
    if image.machine() != Machine::X86_64 {
        return true;
    }
    let bodies: Vec<ShimBody<'_, '_>> = shim_bodies(table, image).collect();
    let is_part = |address| bodies.iter().any(|body| body.contains(address));
    let code = image.code();
    [&b"__rust_alloc"[..], b"__rust_dealloc"].into_iter().any(|name| {
        let Some(body) = bodies.iter().find(|body| body.name == name) else { return true };
        let addresses = body.targets_of_each_call().filter(|to| image.contains(*to) && !is_part(*to));
        let addresses: Vec<u64> = addresses.collect();
        let targets = Targets::new(&addresses);
        let elsewhere =
            code.iter().flat_map(|segment| targets.distances(segment)).filter(|(at, _)| !is_part(*at));
        let shared: BTreeSet<u16> = elsewhere.map(|(_, target)| target).collect();
        // A copy refers to all these addresses. So if other code refers to fewer of them, there is no copy.
        shared.len() == addresses.iter().collect::<BTreeSet<_>>().len()
    })
}

/// Recognizes the allocators of a file without symbols.
fn by_text(file: &ElfFile<'_>) -> Vec<AllocatorPlan> {
    let mut plans: Vec<AllocatorPlan> = Vec::new();
    for family in FAMILIES.iter().filter(|family| family.text.is_some_and(|text| file.contains_text(text))) {
        if plans.iter().all(|plan| plan.family.name != family.name) {
            plans.push(AllocatorPlan { family, plan: Err(RefusalReason::Stripped) });
        }
    }
    plans
}

/// The plan for a family. `None` if the program does not use it.
fn plan_family(
    family: &'static AllocatorFamily,
    found: &FamilyFunctions,
    table: &SymbolTable<'_>,
    image: &dyn LoadedImage,
) -> Option<AllocatorPlan> {
    if !found.is_marked || !found.has_allocation() {
        return None;
    }
    let plan = references_of(family, found, table, image).transpose()?;
    Some(AllocatorPlan { family, plan })
}

fn references_of(
    family: &'static AllocatorFamily,
    found: &FamilyFunctions,
    table: &SymbolTable<'_>,
    image: &dyn LoadedImage,
) -> Result<Option<RedirectPlan>, RefusalReason> {
    let name = |name: &'static str| {
        let is_prefixed = family.functions.iter().any(|function| function.is_named(name.as_bytes()))
            || family.unsupported.contains(&name);
        AllocatorFunctionName { prefix: if is_prefixed { family.prefix } else { "" }, name }
    };
    // Several names may have one address.
    let mut functions: Vec<PlannedFunction> = Vec::new();
    for (function, address) in &found.functions {
        if functions.iter().all(|known| known.address != *address) {
            functions.push(PlannedFunction { function, address: *address });
        }
    }
    let mut addresses: Vec<u64> = functions.iter().map(|function| function.address).collect();
    addresses.extend(found.unsupported.iter().map(|(_, address)| address));
    addresses.extend(&found.copies);
    let targets = Targets::new(&addresses);
    let mut references = targets.words(image);
    if !references.is_empty() && !family.marker.is_empty() {
        let own_data: Vec<Symbol<'_>> = table.iter().filter(|symbol| family.is_own_data(symbol)).collect();
        references
            .retain(|word| !own_data.iter().any(|data| word.at.wrapping_sub(data.address) < data.bytes));
    }
    let code = image.code();
    let matches = targets.code(image);
    let positions: Vec<u64> = matches.iter().map(|found| found.reference.at).collect();
    let is_shims = core::ptr::eq(family, &raw const FAMILIES[SHIMS]);
    for (matched, enclosing) in matches.iter().zip(symbols::enclosing(table, &positions)) {
        // A function may have several names.
        let is_own = family.is_own_code(enclosing.name)
            || library_function(base_name(enclosing.name)).is_some_and(|function| found.has(function));
        if is_own || addresses.contains(&enclosing.start) {
            continue;
        }
        // Rust calls its own functions through words. Direct calls come from link-time optimization, which inlines some
        // calls and not others.
        if is_shims && matched.decoded_end.is_some() {
            return Err(RefusalReason::Inlined);
        }
        let is_clear = !matched.is_odd && is_clear(&code, matched, enclosing);
        // If the match is not an operand, its 4 bytes equal the address by chance.
        let is_immediate = matched.reference.form == ReferenceForm::Code(CodeReference::Immediate);
        if !is_clear && is_immediate && !enclosing.name.is_empty() {
            continue;
        }
        if !is_clear {
            let function = functions.get(usize::from(matched.reference.function));
            return Err(RefusalReason::UnclearCode(name(
                function.map_or("", |function| function.function.name()),
            )));
        }
        references.push(matched.reference);
    }
    if references.is_empty() {
        return Ok(None);
    }
    if is_shims && may_be_inlined(table, image) {
        return Err(RefusalReason::Inlined);
    }
    if let Some(function) = found.ambiguous {
        return Err(RefusalReason::Ambiguous(name(function.name())));
    }
    let is_in_code = |address: u64| {
        code.iter().any(|segment| address.wrapping_sub(segment.address) < segment.bytes.len() as u64)
    };
    if let Some(outside) = functions.iter().find(|function| !is_in_code(function.address)) {
        return Err(RefusalReason::OutsideOfCode(name(outside.function.name())));
    }
    for reference in &references {
        if let Some(unsupported) = usize::from(reference.function).checked_sub(functions.len()) {
            let Some((listed, _)) = found.unsupported.get(unsupported) else {
                return Err(RefusalReason::Inlined);
            };
            return Err(RefusalReason::Unsupported(name(listed)));
        }
    }
    // A program may end without a free. The functions that free are all inlined only if the file has none.
    if !functions.iter().any(|planned| planned.function.call == FunctionCall::Free) {
        return Err(RefusalReason::Inlined);
    }
    Ok(Some(RedirectPlan {
        functions,
        references,
        usable_size: found.usable_size,
        is_shims,
        for_libraries: Vec::new(),
    }))
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
    let Ok(end) = usize::try_from(end.wrapping_sub(enclosing.start)) else { return false };
    function.is_some_and(|function| x86_64::is_instruction_end(function, end))
}
