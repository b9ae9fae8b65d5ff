//! Recognizes frames of allocators and collections. These frames do not show which function needed the memory.

use super::source_path::{library, package};
use crate::dump::{CallFrame, FrameText};

/// The texts by which `dmd.py` recognizes an allocator, anywhere in a frame.
const IN_C: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "operator new(",
    "operator new[](",
    "g_slice_alloc",
    "???",
    "mozilla::dmd::AllocCallback",
    "mozilla::dmd::StackTrace::Get",
];

/// The start of names of functions, types and traits through which a collection calls the allocator: names of Rust's
/// libraries, of crates with collections, and of DMD.
const IN_RUST: &[&str] = &[
    "__rust_alloc",
    "__rust_realloc",
    "__rustc",
    "__rdl_",
    "__rg_",
    "alloc::",
    "allocator_api2::",
    "core::",
    "std::alloc::",
    "std::collections::",
    "std::sys::alloc",
    "hashbrown::",
    "indexmap::",
    "smallvec::",
    "thin_vec::",
    "tinyvec::",
    "dmd::",
    "memory_reporter::allocator",
];

/// Crates of allocators and collections. All their functions count, because the name of an inlined function may have no
/// path.
const CRATES: &[&str] =
    &["alloc", "core", "allocator-api2", "hashbrown", "indexmap", "smallvec", "thin-vec", "tinyvec"];

/// The texts by which `block_analyzer.py` recognizes an allocator. This script lists wrappers by name, so fewer frames
/// match than in `dmd.py`.
const IN_BLOCKS: &[&str] = &[
    "malloc (",
    "replace_malloc",
    "replace_calloc",
    "replace_realloc",
    "replace_memalign",
    "replace_posix_memalign",
    "malloc_zone_malloc",
    "moz_xmalloc",
    "moz_xcalloc",
    "moz_xrealloc",
    "operator new(",
    "operator new[](",
    "g_malloc",
    "g_slice_alloc",
    "callocCanGC",
    "reallocCanGC",
    "vpx_malloc",
    "vpx_calloc",
    "vpx_realloc",
    "vpx_memalign",
    "js_malloc",
    "js_calloc",
    "js_realloc",
    "pod_malloc",
    "pod_calloc",
    "pod_realloc",
    "Allocator::Malloc",
    "Allocator<ReplaceMallocBase>::malloc(",
    "???",
];

/// The rules by which a frame counts as an allocator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocatorFrames {
    /// The rules of `dmd.py`.
    C,
    /// The rules of `dmd.py`, and the rules for Rust's libraries.
    CAndRust,
    /// The rules of `block_analyzer.py`.
    Blocks,
}

impl AllocatorFrames {
    pub(crate) fn has(self, text: FrameText<'_>) -> bool {
        let any = |names: &[&str]| names.iter().any(|name| text.as_str().contains(name));
        match self {
            Self::C => any(IN_C),
            Self::Blocks => any(IN_BLOCKS),
            Self::CAndRust => text.frame().is_of_allocator(),
        }
    }
}

impl CallFrame<'_> {
    /// Whether the frame is an allocator's: a function of C's allocator, of an allocator's crate, of Rust's
    /// collections, or an unknown function.
    pub fn is_of_allocator(&self) -> bool {
        // The path of a source file counts only in Rust's libraries and in the crates of allocators.
        let function = self.name();
        self.in_allocator
            || IN_C.iter().any(|name| function.contains(name))
            || is_rust(function)
            || self.place().is_some_and(is_in_library)
    }
}

fn is_in_library(file: &str) -> bool {
    match library(file) {
        Some(("std", below)) => ["alloc.rs", "collections/"].iter().any(|part| below.starts_with(part)),
        of => of.or_else(|| package(file)).is_some_and(|(name, _)| CRATES.contains(&name)),
    }
}

fn is_rust(function: &str) -> bool {
    let owner = function.trim_start_matches(['<', '&', '[', '(']);
    let owner = owner.strip_prefix("mut ").unwrap_or(owner);
    if IN_RUST.iter().any(|name| owner.starts_with(name)) {
        return true;
    }
    // A trait of `alloc` or `core::alloc` for any type, or a trait of `core` for a type without a path.
    let of_trait = function.split_once(" as ").filter(|_| function.starts_with('<'));
    if let Some((owner, name)) = of_trait {
        let built_in = !owner.contains("::");
        let of_all = ["alloc::", "core::alloc::"].iter().any(|path| name.starts_with(path));
        return of_all || (built_in && name.starts_with("core::"));
    }
    // These functions belong to a global allocator if their names have no path.
    ["alloc", "alloc_zeroed", "realloc"].contains(&function.split('<').next().unwrap_or_default())
}
