//! Finds the functions of all families in a symbol table, and the functions that contain addresses of interest.

use crate::elf::{Symbol, SymbolTable};
use crate::families::{AllocatorFamily, FAMILIES, SHIMS};

/// The functions of a family that a file defines.
#[derive(Debug, Default)]
pub(crate) struct FamilyFunctions {
    /// For each function: its index in the family's table, and its address.
    pub(crate) functions: Vec<(u16, u64)>,
    /// Parts and copies that a compiler made of functions.
    pub(crate) copies: Vec<(u16, u64)>,
    pub(crate) unsupported: Vec<(u16, u64)>,
    pub(crate) usable_size: Option<u64>,
    /// Whether the file contains the family's marker.
    pub(crate) is_marked: bool,
    /// The index of a function whose name occurs with two addresses.
    pub(crate) ambiguous: Option<u16>,
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
        for symbol in table.iter().filter(|symbol| symbol.is_function) {
            found.add(&symbol);
        }
        found
    }

    fn add(&mut self, symbol: &Symbol<'_>) {
        for (family, found) in FAMILIES.iter().zip(&mut self.families) {
            found.is_marked |= symbol.name.starts_with(family.marker.as_bytes());
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
    fn add(&mut self, family: &AllocatorFamily, name: &[u8], address: u64) {
        // Compilers give parts and copies of a function a suffix. Callers may call a copy directly.
        let base = name.split(|byte| *byte == b'.').next().unwrap_or(name);
        let is_listed = |listed: &str| match listed.strip_suffix('*') {
            Some(start) => name.starts_with(start.as_bytes()),
            None => listed.as_bytes() == name,
        };
        if let Some(index) = family.functions.iter().position(|function| function.name.as_bytes() == base) {
            let index = index as u16;
            if base.len() < name.len() {
                return self.copies.push((index, address));
            }
            match self.functions.iter().find(|(other, _)| *other == index) {
                Some((_, known)) if *known != address => self.ambiguous = Some(index),
                Some(_) => {}
                None => self.functions.push((index, address)),
            }
        } else if family.usable_size.is_some_and(|usable| usable.as_bytes() == name) {
            self.usable_size = Some(address);
        } else if let Some(index) = family.unsupported.iter().position(|listed| is_listed(listed)) {
            self.unsupported.push((index as u16, address));
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
