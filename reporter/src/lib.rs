//! Account for every byte of a Rust process.

#![deny(unsafe_code)]

mod allocator;
mod builtin;
mod collect;
mod consistency;
mod conventions;
mod counter;
mod erased;
mod error;
mod impls;
mod layout;
mod malloc_size_of;
mod memory_reporter;
mod ops;
mod platform;
mod pressure;
mod reading;
mod registry;
mod report;
mod report_set;
mod reports;
mod skipped;
mod stack_guard;
mod third_party;
mod walk_state;
mod warning;

pub mod amounts;
pub mod docs;
pub mod file;
pub mod tree;

pub use allocator::{AllocatorStatistics, DeclaredAllocator, UsableSize, declared as declared_allocator};
pub use collect::{CollectOptions, Collection, collect_reports};
pub use counter::{CounterSite, CountingMalloc, MemoryCounter};
pub use erased::ErasedMallocSizeOf;
pub use error::ReadError;
pub use malloc_size_of::{
    MallocSizeOf, MallocSizeOfEach, OwningPointer, SizeOfIncludingThis, computed_size_of, malloc_size_of,
};
pub use memory_reporter::MemoryReporter;
#[cfg(feature = "derive")]
pub use memory_reporter_derive::MallocSizeOf;
pub use ops::MallocSizeOfOps;
pub use pressure::{PressureHook, minimize_memory_usage, on_memory_pressure};
pub use reading::{Block, Computed, Edge, Erased, Measured, Observe, Reading};
pub use registry::{LocalRegistration, Registration, register_local, register_strong, register_weak};
pub use report::{Kind, Report, Units};
pub use report_set::{ReportSet, ReporterRun};
pub use reports::{Reports, path_segment};
pub use skipped::{SkipReason, Skipped};
pub use walk_state::WalkState;
pub use warning::{Warning, WarningKind};

/// What the macros of this crate expand to. Not for direct use, and without any promise.
#[doc(hidden)]
pub mod __private {
    pub use crate::allocator::{Declared, DeclaredAllocator};
    pub use crate::conventions::{assert_description, assert_kind, assert_path};
    pub use crate::memory_reporter::amount;
    pub use crate::registry::StaticReporter;
    pub use inventory;
}
