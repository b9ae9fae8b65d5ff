//! Account for every byte of a Rust process: measure values, register memory reporters, collect one
//! tree that adds up.
//!
//! A program declares its allocator ([`global_allocator!`]), derives [`MallocSizeOf`] on its types and
//! registers reporters; [`collect_reports`] runs them. Sizes are what the allocator says where it was
//! declared, and computed from layouts where not, which is sound with any allocator.
//!
//! ```
//! use memory_reporter::{CollectOptions, MallocSizeOf, collect_reports};
//! use std::sync::Mutex;
//!
//! memory_reporter::global_allocator!(std::alloc::System);
//!
//! #[derive(MallocSizeOf)]
//! struct Page {
//!     title: String,
//! }
//!
//! static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());
//! memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");
//!
//! PAGES.lock().unwrap().push(Page { title: "a page".into() });
//! let reports = collect_reports(&CollectOptions::new());
//! let tree = memory_reporter::tree::Forest::new(&reports);
//! assert!(tree.amount("explicit/pages").unwrap() >= 24 + 6);
//! assert!(tree.amount("explicit/heap-unclassified").is_some());
//! ```
//!
//! What it does not do: show the tree as text (the crate `about-memory` does), and find out who
//! allocated what nobody reports.
//!
//! # How it hangs together
//!
//! - Measuring: [`MallocSizeOf`] is the walk, [`MallocSizeOfOps`] what it calls on its way, and
//!   [`Reading`] what it means: [`Computed`] or [`Measured`].
//! - Reporting: a [`MemoryReporter`] puts reports into [`Reports`]; [`collect_reports`] and
//!   [`Collection`] make a [`ReportSet`] of them, with a [`Warning`] for whatever is wrong.
//! - Using: [`tree::Forest`] adds a set up, [`mod@file`] reads and writes it as Firefox does,
//!   [`mod@diff`] tells what changed, [`mod@live`] answers from outside while the program runs.
//!
//! # What is exact
//!
//! Computed sizes equal the bytes asked of the allocator for all collections of std, but for hash tables
//! after removals (about one in a thousand is taken for half its size) and an emptied `BTreeMap` (it may
//! keep one leaf that nobody can see). Measured sizes equal the usable bytes wherever the start of a block
//! can be seen; for hash tables, B-tree and list nodes and some `VecDeque`s only a place inside is visible, and
//! these blocks count what was asked for.
//!
//! # Features
//!
//! - `derive` (default): `#[derive(MallocSizeOf)]`.
//! - `jemalloc`, `mimalloc`: declare these allocators, and read their statistics.
//! - one for each other crate whose types are measured, by its name: see [`docs`].

#![deny(unsafe_code)]

mod add_size_of;
mod admission;
mod allocator;
mod builtin;
mod collect;
mod consistency;
mod conventions;
mod counter;
mod dark_matter;
mod erased;
mod error;
mod impls;
mod isolation;
mod layout;
mod malloc_size_of;
mod memory_reporter;
mod name_pattern;
mod ops;
mod platform;
mod prefetch;
mod pressure;
mod reading;
mod registry;
mod report;
mod report_set;
mod reporter_name;
mod reports;
mod resident_map;
mod size_summary;
mod skipped;
mod stack_guard;
mod third_party;
mod walk_state;
mod warning;

pub mod amounts;
#[doc(hidden)]
pub mod bridge;
pub mod diff;
pub mod docs;
pub mod file;
pub mod live;
pub mod size_tree;
pub mod tree;

pub use add_size_of::{AddSizeOf, add_size_of};
pub use allocator::{
    AllocatorStatistics, CUsableSize, DeclaredAllocator, UsableSize, declared as declared_allocator,
};
pub use collect::{CollectOptions, Collection, collect_reports};
pub use counter::{CounterSite, CountingMalloc, MemoryCounter};
pub use erased::ErasedMallocSizeOf;
pub use error::{ListenError, ReadError};
pub use live::{Listening, listen, listen_to_signals};
pub use malloc_size_of::{
    MallocSizeOf, MallocSizeOfEach, OwningPointer, SizeOfIncludingThis, computed_size_of, malloc_size_of,
};
pub use memory_reporter::MemoryReporter;
#[cfg(feature = "derive")]
pub use memory_reporter_derive::MallocSizeOf;
pub use name_pattern::NamePattern;
pub use ops::MallocSizeOfOps;
pub use pressure::{PressureHook, minimize_memory_usage, on_memory_pressure};
pub use reading::{Block, Computed, Edge, Erased, Measured, Observe, Reading};
pub use registry::{LocalRegistration, Registration, register_local, register_strong, register_weak};
pub use report::{Kind, Report, Units};
pub use report_set::{ReportSet, ReporterRun};
pub use reports::{Reports, path_segment};
pub use size_summary::{SizeSummary, Summed, size_summary};
pub use size_tree::{SizeTree, computed_size_tree, size_tree};
pub use skipped::{SkipReason, Skipped};
pub use walk_state::WalkState;
pub use warning::{Warning, WarningKind};

/// What the macros of this crate expand to, and what `heap-graph` shares. Not for direct use, and without any promise.
#[doc(hidden)]
pub mod __private {
    pub use crate::allocator::{Declared, DeclaredAllocator};
    pub use crate::conventions::{assert_description, assert_kind, assert_path};
    pub use crate::isolation::contain;
    pub use crate::memory_reporter::{OneReport, amount};
    pub use crate::name_pattern::StaticNamePattern;
    pub use crate::registry::StaticReporter;
    pub use crate::stack_guard::apart;
    pub use core::prelude::v1::global_allocator;
    pub use inventory;
}
