//! Heap tests: what a piece of code allocates, exactly, in parallel tests.
//!
//! A test binary declares its allocator once. [`Scope::measure`] calls a piece of code, [`assert_heap!`] compares its
//! figures:
//!
//! ```standalone_crate
//! use memory_heap_test::{Scope, assert_heap};
//!
//! memory_heap_test::global_allocator!(std::alloc::System);
//!
//! let (words, scope) = Scope::measure(|| "one two three".split(' ').map(str::to_owned).collect::<Vec<_>>());
//! assert_heap!(scope, allocs == 4, peak <= 1 KiB);
//! drop(words);
//! assert_heap!(scope.scope(), retained == 0);
//! ```
//!
//! - [`assert_heap_baseline!`] compares scopes with a text file in the repository: growth fails, and one variable
//!   rewrites the file.
//! - [`audit!`] compares the result of a method such as `size()` with the memory of the value.
//! - The feature `criterion08` adds a measurement for criterion: allocations or bytes for each iteration.
//!
//! [`Scope`] explains what belongs to a scope, and works with guards, futures, jobs of pools and threads.
//!
//! # What a failure shows
//!
//! The message has each failed figure with the expected and the real number, and a file in the target folder has the
//! same text with all stacks. Stacks need DMD: declare
//! `memory_heap_test::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));`, and run the test with
//! `DMD=--stacks=full`.
//!
//! # What it does not do
//!
//! It counts only blocks of the declared allocator, not blocks of C libraries and not mappings. If a figure could be
//! wrong, the assertion fails and names the reason: it never compares a guess.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod baseline;
mod baseline_text;
#[cfg(feature = "criterion08")]
mod criterion;
mod expectation;
mod failure;
mod figure;
mod macros;

pub use memory_reporter::global_allocator;
pub use memory_reporter::scopes::{self, HeapFigures, MeasuredScope, Scope, ScopeError};

pub use audit::{Audit, SizeAudit};
#[cfg(feature = "criterion08")]
pub use criterion::HeapMeasurement;
pub use figure::MeasuredHeap;

/// For the macros of this crate. Do not use it directly; it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::audit::check as check_audit;
    pub use crate::baseline::check as check_baseline;
    pub use crate::expectation::{Comparison, HeapExpectation, ToAmount, check};
    pub use crate::figure::HeapFigure;
}
