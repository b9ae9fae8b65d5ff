//! Code that the tests of several crates share: a counting allocator as the reference, and golden text.

mod golden;
#[cfg(doctest)]
mod guide;

pub use allocators::{Counting, CountingOver, Held, Random, grown, peak};
pub use golden::golden;
