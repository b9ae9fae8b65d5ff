//! The types that this crate measures, how exactly, and how to switch from another crate.
//!
//! - **exact**: the size counts every requested byte, and the start of each block is visible, so that the allocator
//!   can return the block's usable size.
//! - **computed**: the size counts every requested byte. For some blocks only an address inside is visible, so that
//!   only DMD, which has a table of live blocks, can return their usable size.
//! - **at least**: a part of the requested bytes is not visible, and the size lacks it.
//! - **stated**: the crate states the figure itself; no test checks it.
//! - **opaque**: the memory is not visible. The size lacks it, and the result records it as skipped.

#[doc = include_str!("docs/std_types.md")]
pub mod std_types {}

#[doc = include_str!("docs/third_party.md")]
pub mod third_party {}

#[doc = include_str!("docs/other_crates.md")]
pub mod other_crates {}

#[doc = include_str!("docs/coming_from.md")]
pub mod coming_from {}
