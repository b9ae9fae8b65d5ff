//! Account for every byte of a Rust process.

#![deny(unsafe_code)]

mod allocator;
mod erased;
mod impls;
mod layout;
mod malloc_size_of;
mod ops;
mod platform;
mod reading;
mod report;
mod report_set;
mod skipped;
mod stack_guard;
mod walk_state;
mod warning;

pub mod file;
pub mod tree;

pub use allocator::{AllocatorStatistics, DeclaredAllocator, UsableSize, declared as declared_allocator};
pub use erased::ErasedMallocSizeOf;
pub use malloc_size_of::{
    MallocSizeOf, MallocSizeOfEach, OwningPointer, SizeOfIncludingThis, computed_size_of, malloc_size_of,
};
#[cfg(feature = "derive")]
pub use memory_reporter_derive::MallocSizeOf;
pub use ops::MallocSizeOfOps;
pub use reading::{Block, Computed, Edge, Erased, Measured, Observe, Reading};
pub use report::{Kind, Report, Units};
pub use report_set::{ReportSet, ReporterRun};
pub use skipped::{SkipReason, Skipped};
pub use walk_state::WalkState;
pub use warning::{Warning, WarningKind};

/// What the macros of this crate expand to. Not for direct use, and without any promise.
#[doc(hidden)]
pub mod __private {
    pub use crate::allocator::{Declared, DeclaredAllocator};
    pub use inventory;
}
