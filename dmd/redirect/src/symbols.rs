//! Finds the functions of all families in a symbol table, and the functions that contain addresses of interest.

use crate::elf::{Symbol, SymbolTable};
use crate::families::{AllocatorFamily, FAMILIES, SHIMS, base_name, library_function, listed, name_in_c};
use crate::functions::{AllocatorFunction, FunctionCall};

/// The functions of a family that a file defines.
#[derive(Debug, Default)]
pub(crate) struct FamilyFunctions {
    /// Each function with its address.
    pub(crate) functions: Vec<(&'static AllocatorFunction, u64)>,
    /// The addresses of parts and copies that a compiler made of functions, and of functions that only the allocator
    /// calls. Another caller contains a copy of one of the allocator's functions.
    pub(crate) copies: Vec<u64>,
    pub(crate) unsupported: Vec<(&'static str, u64)>,
    pub(crate) usable_size: Option<u64>,
    /// Whether the file contains the family's marker.
    pub(crate) is_marked: bool,
    /// A function whose name occurs with two addresses.
    pub(crate) ambiguous: Option<&'static AllocatorFunction>,
    /// Whether the family's functions are in place of the C library's.
    pub(crate) replaces_library: bool,
}

/// The functions of all families that a file defines.
#[derive(Debug)]
pub(crate) struct AllocatorSymbols {
    pub(crate) families: [FamilyFunctions; FAMILIES.len()],
    /// Whether the file contains Rust's default allocator, which calls `malloc`.
    pub(crate) has_system_shims: bool,
}

/// The text after the compiler's hash in the names of functions that the compiler defines.
const COMPILER_DEFINED: &[u8] = b"_7___rustc";

/// The plain name of a function that Rust's compiler defines: from `_RNvCs<hash>_7___rustc12___rust_alloc` the text
/// `__rust_alloc`.
pub(crate) fn plain_name(name: &[u8]) -> &[u8] {
    if !name.starts_with(b"_RNvC") {
        return name;
    }
    let Some(at) = name.windows(COMPILER_DEFINED.len()).position(|part| part == COMPILER_DEFINED) else {
        return name;
    };
    let rest = &name[at + COMPILER_DEFINED.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A length and an underscore precede a name that starts with an underscore.
    rest.get(digits + 1..).unwrap_or(name)
}

impl AllocatorSymbols {
    pub(crate) fn find(table: &SymbolTable<'_>) -> Self {
        let mut found = Self { families: Default::default(), has_system_shims: false };
        let mut library = Vec::new();
        for symbol in table.iter().filter(|symbol| symbol.is_function) {
            found.add(&symbol);
            library.extend(library_function(symbol.name).map(|function| (function, symbol.address)));
        }
        let malloc =
            library.iter().find(|(function, _)| function.is_named(b"malloc")).map(|(_, address)| *address);
        for family in &mut found.families {
            if family.functions.iter().any(|(_, address)| Some(*address) == malloc) {
                // The program may define the other functions itself.
                let own = |place: &&(_, u64)| family.functions.iter().any(|(_, address)| *address == place.1);
                let own: Vec<_> = library.iter().filter(own).copied().collect();
                family.functions.extend(own);
                family.replaces_library = true;
            }
        }
        found
    }

    fn add(&mut self, symbol: &Symbol<'_>) {
        for (family, found) in FAMILIES.iter().zip(&mut self.families) {
            let is_marker = |name: &[u8]| name.starts_with(family.marker.as_bytes());
            let in_c = name_in_c(symbol.name);
            found.is_marked |= is_marker(symbol.name) || is_marker(in_c);
            if !family.inner.is_empty() && listed(family.inner, base_name(in_c)).is_some() {
                found.copies.push(symbol.address);
            }
        }
        // Most symbols are names of other functions in Rust or C++.
        if symbol.name.starts_with(b"_ZN")
            || symbol.name.starts_with(b"_RN") && !symbol.name.starts_with(b"_RNvC")
        {
            return;
        }
        let name = plain_name(symbol.name);
        self.has_system_shims |= name == b"__rdl_alloc";
        for (index, family) in FAMILIES.iter().enumerate() {
            let name = if index == SHIMS { name } else { symbol.name };
            if let Some(rest) = name.strip_prefix(family.prefix.as_bytes()) {
                self.families[index].add(family, rest, symbol.address);
            }
        }
    }
}

impl FamilyFunctions {
    /// Whether the file defines a function that allocates.
    pub(crate) fn has_allocation(&self) -> bool {
        self.functions.iter().any(|(function, _)| function.call != FunctionCall::Free)
    }

    pub(crate) fn has(&self, function: &'static AllocatorFunction) -> bool {
        self.functions.iter().any(|(known, _)| core::ptr::eq(*known, function))
    }

    fn add(&mut self, family: &'static AllocatorFamily, name: &[u8], address: u64) {
        // Callers may call a copy directly.
        let base = base_name(name);
        if let Some(function) = family.functions.iter().find(|function| function.is_named(base)) {
            if base.len() < name.len() {
                return self.copies.push(address);
            }
            match self.functions.iter().find(|(other, _)| core::ptr::eq(*other, function)) {
                Some((_, known)) if *known != address => self.ambiguous = Some(function),
                Some(_) => {}
                None => self.functions.push((function, address)),
            }
        } else if family.usable_size.is_some_and(|usable| usable.as_bytes() == name) {
            self.usable_size = Some(address);
        } else if let Some(listed) = listed(family.unsupported, name) {
            self.unsupported.push((listed, address));
        }
    }
}

/// The function that contains an address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnclosingFunction<'f> {
    pub(crate) name: &'f [u8],
    pub(crate) start: u64,
}

/// For each of these sorted addresses, the function that contains it. If no function contains the address, the name is
/// empty.
pub(crate) fn enclosing<'f>(table: &SymbolTable<'f>, addresses: &[u64]) -> Vec<EnclosingFunction<'f>> {
    let mut found = vec![EnclosingFunction::default(); addresses.len()];
    for symbol in table.iter().filter(|symbol| symbol.is_function && symbol.bytes > 0) {
        let end = symbol.address.saturating_add(symbol.bytes);
        let first = addresses.partition_point(|address| *address < symbol.address);
        for (place, _) in found[first..].iter_mut().zip(addresses[first..].iter().take_while(|at| **at < end))
        {
            *place = EnclosingFunction { name: symbol.name, start: symbol.address };
        }
    }
    found
}
