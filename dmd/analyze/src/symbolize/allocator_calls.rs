//! Finds the calls of the global allocator among the calls at a place.
//!
//! Where debug information has only lines, an inlined function has neither path nor crate: `alloc`, `record`,
//! `{closure#0}`. Such a function is the allocator's if it was inlined into a function of the allocator that has a name.

/// Functions that the compiler makes for `#[global_allocator]`: every block of a Rust program comes through one of these.
const ENTRIES: &[&str] = &["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc"];

/// The trait that every global allocator implements.
const TRAIT: &str = " as core::alloc::global::GlobalAlloc>::";

/// The module of the engine's wrapper. Its hooks are never inlined, so that each has a symbol in every build.
const WRAPPER: &str = "dmd::global_alloc::";

/// The number of calls that are the allocator's: from the innermost one to the outermost one whose name shows it.
/// `functions` are the names of the calls at a place, innermost first.
pub(super) fn count<'c>(functions: impl Iterator<Item = Option<&'c str>>) -> usize {
    let named = functions.enumerate().filter(|(_, function)| function.is_some_and(is_of_allocator));
    named.last().map_or(0, |(at, _)| at + 1)
}

fn is_of_allocator(function: &str) -> bool {
    let owner = function.trim_start_matches(['<', '&']);
    let last = function.rsplit("::").next().unwrap_or(function);
    ENTRIES.contains(&last) || function.contains(TRAIT) || owner.starts_with(WRAPPER)
}
