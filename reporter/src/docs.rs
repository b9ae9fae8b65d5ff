//! Which types are measured, how exactly, and how to come from another crate.
//!
//! - **exact**: every byte that was asked of the allocator is counted, and each block is seen from
//!   its start, so that the allocator can be asked about it.
//! - **computed**: every byte that was asked for is counted; of some blocks std shows only the
//!   inside, so that only an allocator with a table of its live blocks can tell more.
//! - **at least**: part of what was asked for cannot be told and is left out.
//! - **opaque**: what cannot be seen is left out, and recorded as not seen with the result.

#[doc = include_str!("docs/std_types.md")]
pub mod std_types {}

#[doc = include_str!("docs/third_party.md")]
pub mod third_party {}

#[doc = include_str!("docs/coming_from.md")]
pub mod coming_from {}
