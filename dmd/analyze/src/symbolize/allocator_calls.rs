//! Finds the calls of the global allocator among the calls at a place.
//!
//! In debug information with only lines, an inlined function has neither path nor crate: `alloc`, `record`,
//! `{closure#0}`. Such a function belongs to the allocator if it was inlined into a named function of the allocator.

/// Functions that the compiler generates for `#[global_allocator]`. A Rust program allocates and frees every block
/// through these functions.
const ENTRIES: &[&str] = &["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc"];

/// The trait that every global allocator implements.
const TRAIT: &str = " as core::alloc::global::GlobalAlloc>::";

/// The module of the engine's wrapper of an allocator. The hooks of the wrapper are never inlined, so each hook has a
/// symbol in every build.
const WRAPPER: &str = "dmd::global_alloc::";

/// The number of calls that belong to the allocator: from the innermost call to the outermost call with an allocator's
/// name. `functions` are the names of the calls at a place, innermost first.
pub(super) fn count<'c>(functions: impl Iterator<Item = Option<&'c str>>) -> usize {
    let named = functions.enumerate().filter(|(_, function)| function.is_some_and(is_of_allocator));
    named.last().map_or(0, |(at, _)| at + 1)
}

fn is_of_allocator(function: &str) -> bool {
    let owner = function.trim_start_matches(['<', '&']);
    let last = function.rsplit("::").next().unwrap_or(function);
    ENTRIES.contains(&last) || function.contains(TRAIT) || owner.starts_with(WRAPPER)
}
