//! Account for every byte of a Rust process: measure values, register memory reporters, collect one
//! tree that adds up.
//!
//! A program declares its allocator ([`global_allocator!`]), derives [`MallocSizeOf`] on its types and
//! registers reporters; [`collect_reports`] runs them. If the program declares its allocator, sizes come from that;
//! otherwise they are computed from layouts, which is sound with any allocator.
//!
//! ```standalone_crate
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
//! What it does not do: show the tree as text (the crate `about-memory` does), and find the stacks that allocated
//! unreported memory (the crate `dmd` does).
//!
//! # How it hangs together
//!
//! - Measuring: [`MallocSizeOf`] is the walk, [`MallocSizeOfOps`] has the functions it calls, and [`Reading`] is what
//!   it means: [`Computed`] or [`Measured`].
//! - Reporting: a [`MemoryReporter`] puts reports into [`Reports`]; [`collect_reports`] and
//!   [`Collection`] make a [`ReportSet`] of them, with a [`Warning`] for each fault.
//! - Using: [`tree::Forest`] adds a set up, [`mod@file`] reads and writes it as Firefox does, and [`mod@diff`] compares
//!   two sets; these are the crate `memory-report`. The module `live` answers requests while the
//!   program runs.
//!
//! # What is exact
//!
//! Computed sizes equal the requested bytes for all collections of std, with two exceptions: of hash tables after
//! removals about one in a thousand counts as half its size, and an emptied `BTreeMap` may keep one invisible leaf.
//! Measured sizes equal the usable bytes if the start of a block is visible. Of hash tables, B-tree and list nodes and
//! some `VecDeque`s only the inside is visible; these blocks count the requested bytes, unless DMD records them.
//!
//! # Features
//!
//! - `derive` (default): `#[derive(MallocSizeOf)]`.
//! - `gzip` (default): [`file`](mod@file) reads and writes compressed files. Without it a program builds in a fifth less time.
//! - `live` (default): the module `live`, and the variable `ABOUT_MEMORY`. Without it a program is smaller.
//! - `serde`: a [`SizeTree`] can be serialized.
//! - `jemalloc`, `mimalloc`: declare these allocators, and read their statistics.
//! - `gc-arena`: an arena of this crate is a [`Collector`].
//! - one for each crate whose types can be measured, by the name of the crate: see [`docs`].
//!
//! With `gzip`, files are compressed by `flate2`, whose default backend is in Rust. An application that turns on another backend of
//! `flate2` (`zlib-rs`, `zlib-ng`) has that one here, too.

#![deny(unsafe_code)]

mod allocator;
mod collect;
mod measure;
mod platform;
mod process_lock;
mod reporting;
mod small_sort;
mod start_up;
mod watching;

pub mod docs;
#[doc(hidden)]
pub mod engine_abi;
#[cfg(feature = "live")]
pub mod live;

pub use memory_report::{
    Kind, NamePattern, ReadError, Report, ReportSet, ReporterRun, SkipReason, Skipped, Units, Warning,
    WarningKind, diff, file, path_segment, tree,
};

pub use allocator::{
    AllocatorStatistics, CUsableSize, DeclaredAllocator, UsableSize, declared as declared_allocator,
};
pub use collect::{
    AllocatorPurge, CollectOptions, Collection, MemoryPressure, PressureHook, answer_here, collect_reports,
    minimize_memory_usage, on_memory_pressure,
};
pub use engine_abi::SiteFrame;
#[cfg(feature = "live")]
pub use live::{listen, listen_to_signals};
pub use measure::{
    AddSizeOf, Block, Computed, Edge, Erased, ErasedMallocSizeOf, MallocSizeOf, MallocSizeOfEach,
    MallocSizeOfOps, Measured, Observe, OwningPointer, Reading, SizeOfIncludingThis, SizeSummary, SizeTree,
    Summed, WalkState, add_size_of, computed_size_of, computed_size_tree, malloc_size_of, size_summary,
    size_tree,
};
#[cfg(feature = "derive")]
pub use memory_reporter_derive::MallocSizeOf;
#[cfg(feature = "live")]
pub use platform::ListenError;
pub use reporting::{
    CounterSite, CountingMalloc, LocalRegistration, MemoryCounter, MemoryReporter, Registration, Reports,
    Tag, TagGuard, Tagged, amounts, register_local, register_strong, register_weak, spawn_tagged, tag,
};
pub use watching::{
    AllocationsLogEntry, ClassName, Collector, CycleProgress, GarbageCollection, GarbageCollectionCycle,
    GarbageCollectionHandler, GarbageCollectionHook, GarbageCollectionSlice, MemoryObserver,
    NurseryRegistration, ObserverError, SavedStack, UncaughtExceptionHandler, WatchedCollector,
    allocation_site, describe_block, on_garbage_collection, register_nursery,
};

/// For the macros of this crate, for `heap-graph`, `dmd` and `memory-endpoint`. Not for direct use; it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::allocator::{Declared, DeclaredAllocator};
    pub use crate::collect::run_reporters;
    #[cfg(feature = "live")]
    pub use crate::live::{__collect as collect_alone, __dump as dump};
    pub use crate::measure::{apart, bytes, of_the_mirrors_type};
    #[cfg(feature = "live")]
    pub use crate::platform::{ThreadHost, host_threads};
    pub use crate::reporting::isolation::contain;
    pub use crate::reporting::registry::StaticReporter;
    pub use crate::reporting::{
        OneReport, StaticNamePattern, amount, assert_description, assert_kind, assert_path,
    };
    pub use core::prelude::v1::global_allocator;
    pub use inventory;
}
