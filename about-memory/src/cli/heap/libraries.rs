//! The shared libraries that a program has loaded, with their debug information.

use std::collections::BTreeSet;
use std::path::Path;

use dmd_analyze::symbolize::{MappedFile, SymbolOptions, debug_file};
use dmd_analyze::{Dump, LoadedModule};
use typed_heap::Library;

use super::debug_bytes;

/// A library, and the contents of the file that has its debug information.
pub(super) struct DebugLibrary {
    path: String,
    bias: u64,
    file: MappedFile,
}

/// Reads the libraries that have allocated blocks and that have their own debug information, up to `left` bytes in
/// total. Omits a library that cannot be read: then only pointers determine the types of the library's blocks.
pub(super) fn read(dump: &Dump, options: &SymbolOptions, mut left: u64) -> Vec<DebugLibrary> {
    let mut on_stacks: BTreeSet<&str> = BTreeSet::new();
    for stack in dump.stacks() {
        on_stacks.extend(stack.filter_map(|frame| frame.module));
    }
    let others = dump.modules().iter().skip(1).filter(|module| on_stacks.contains(&*module.path));
    let library = |module: &LoadedModule| {
        let found = debug_file(Path::new(&module.path), &module.build_id, options)?;
        let file = MappedFile::open(&found).ok()?;
        left = left.checked_sub(debug_bytes(&file))?;
        Some(DebugLibrary { path: module.path.clone(), bias: module.bias?, file })
    };
    others.filter_map(library).collect()
}

/// Returns the libraries for a program that was loaded with this bias.
pub(super) fn with_bias(libraries: &[DebugLibrary], bias: u64) -> Vec<Library<'_>> {
    libraries.iter().map(|one| one.library(bias)).collect()
}

impl DebugLibrary {
    fn library(&self, bias: u64) -> Library<'_> {
        Library::new(&self.path, &self.file, self.bias.wrapping_sub(bias))
    }
}
