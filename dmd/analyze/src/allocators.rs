//! Frames that only say that memory was allocated, not who wanted it.

use crate::frame::{Frame, FrameText};
use crate::source_path::{library, package};

/// What `dmd.py` knows, anywhere in a frame.
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

/// What starts the name of a function, or of the type or trait that it belongs to: how Rust's own
/// libraries come from a collection to the allocator.
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
    "dmd::",
    "memory_reporter::allocator",
];

/// Crates whose functions all are such, whatever these are called: an inlined one may have lost its path.
const CRATES: &[&str] = &["alloc", "core", "allocator-api2", "hashbrown", "indexmap", "smallvec"];

/// What `block_analyzer.py` knows: wrappers by name, so that fewer frames are taken for an allocator's.
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

/// Which frames are an allocator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocatorFrames {
    /// Those that `dmd.py` knows.
    C,
    /// Rust's too.
    CAndRust,
    /// Those that `block_analyzer.py` knows.
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

impl Frame<'_> {
    /// Whether the frame only says that memory was allocated: by C's functions, by Rust's collections, or by a
    /// function that nobody knows.
    pub fn is_of_allocator(&self) -> bool {
        // A folder's name says nothing of the function, but a library's source file does.
        let function = self.name();
        IN_C.iter().any(|name| function.contains(name))
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
    // Traits of the library: for a type of its own, or one that it has for all types.
    let of_trait = function.split_once(" as ").filter(|_| function.starts_with('<'));
    if let Some((owner, name)) = of_trait {
        let built_in = !owner.contains("::");
        let of_all = ["alloc::", "core::alloc::"].iter().any(|path| name.starts_with(path));
        return of_all || (built_in && name.starts_with("core::"));
    }
    // Those of a global allocator, where its path is not known.
    ["alloc", "alloc_zeroed", "realloc"].contains(&function.split('<').next().unwrap_or_default())
}
