//! Finds the functions of the C library and of C++ that an allocator defines around its own functions.
//!
//! A program may define such functions itself, for example an operator `new` with a header before each block. Then the
//! allocator's hooks must not take the pointers for blocks of the allocator. The calls inside of the program's function
//! lead to the hooks instead.

use crate::elf::{Machine, SymbolTable};
use crate::encodings::{aarch64, x86_64};
use crate::families::{FAMILIES, library_function};
use crate::functions::{AllocatorFunction, FunctionCall};
use crate::references::{LoadedImage, function_code};
use crate::symbols::{AllocatorSymbols, FamilyFunctions};

impl AllocatorSymbols {
    /// Adds the functions around private functions of an allocator that replaces `malloc`.
    pub(crate) fn add_wrappers(&mut self, table: &SymbolTable<'_>, image: &dyn LoadedImage) {
        for (family, found) in FAMILIES.iter().zip(&mut self.families) {
            if found.replaces_library {
                let symbols = table.iter().filter(|symbol| symbol.is_function && family.is_private(symbol));
                let private = symbols.map(|symbol| symbol.address).collect();
                found.add_wrappers(private, table, image);
            }
        }
    }
}

impl FamilyFunctions {
    fn add_wrappers(&mut self, mut private: Vec<u64>, table: &SymbolTable<'_>, image: &dyn LoadedImage) {
        // The program's own functions refer to these, too, after link-time optimization.
        private.retain(|address| !self.copies.contains(address) && !self.is_function(*address));
        let code = image.code();
        let (mut wrappers, mut frees) = (Vec::new(), Vec::new());
        let mut has_foreign_new = false;
        for symbol in table.iter().filter(|symbol| symbol.is_function) {
            let Some(function) = library_function(symbol.name) else { continue };
            if self.is_function(symbol.address) {
                continue;
            }
            let body = function_code(&code, &symbol).unwrap_or_default();
            let targets = code_targets(image.machine(), body, symbol.address);
            let refers_to = |addresses: &[u64]| targets.iter().any(|target| addresses.contains(target));
            if refers_to(&private) {
                wrappers.push((function, symbol.address));
            } else if function.call == FunctionCall::Free && refers_to(&self.copies) {
                frees.push((function, symbol.address));
            } else if is_operator_new(function) {
                has_foreign_new = true;
            }
        }
        self.functions.extend(wrappers);
        // The body of an operator `delete` may be a copy of `free`. An allocator defines all operators or none.
        if !has_foreign_new {
            self.functions.extend(frees);
        }
    }

    fn is_function(&self, address: u64) -> bool {
        self.functions.iter().any(|(_, known)| *known == address)
    }
}

fn is_operator_new(function: &AllocatorFunction) -> bool {
    function.name().starts_with("_Zn")
}

/// The addresses that a function's code calls or jumps to.
fn code_targets(machine: Machine, code: &[u8], start: u64) -> Vec<u64> {
    let address = |at: usize| start.wrapping_add(at as u64);
    let bytes = code.windows(4).enumerate().map(|(at, bytes)| (at, [bytes[0], bytes[1], bytes[2], bytes[3]]));
    match machine {
        Machine::X86_64 => bytes
            .filter(|(at, _)| x86_64::distance_form(code, *at).is_some())
            .map(|(at, distance)| x86_64::target(distance, address(at)))
            .collect(),
        Machine::Aarch64 => bytes
            .filter(|(at, _)| at.is_multiple_of(4))
            .filter_map(|(at, word)| aarch64::branch_target(u32::from_le_bytes(word), address(at)))
            .collect(),
    }
}
