//! Account for every byte of a Rust process: measure values, register memory reporters, collect one
//! tree that adds up.
//!
//! A program declares its allocator ([`global_allocator!`]), derives [`MallocSizeOf`] on its types and registers
//! reporters; [`collect()`] runs the reporters. If the program declares its allocator, sizes come from the allocator.
//! Otherwise this crate computes sizes from layouts, which is sound with any allocator.
//!
//! ```standalone_crate
//! use memory_reporter::MallocSizeOf;
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
//! let reports = memory_reporter::collect();
//! let tree = memory_reporter::tree::Forest::new(&reports);
//! assert!(tree.amount("explicit/pages").unwrap() >= 24 + 6);
//! assert!(tree.amount("explicit/heap-unclassified").is_some());
//! ```
//!
//! To show the tree as text, use the crate `about-memory`. To find the stacks that allocated unreported memory, use
//! the crate `dmd`.
//!
//! # Overview
//!
//! - Measuring: [`MallocSizeOf`] is the trait that walks a value. [`MallocSizeOfOps`] contains the functions that a
//!   walk calls. A [`Reading`] decides which bytes of a block count: the requested bytes
//!   ([`ComputedReading`](measure::ComputedReading)) or the usable bytes
//!   ([`MeasuredReading`](measure::MeasuredReading)). The module [`measure`] contains all other items.
//! - Reporting: a [`MemoryReporter`] puts reports into [`Reports`]. [`collect_reports`] and [`Collection`] make a
//!   [`ReportSet`] of them, with a [`Warning`](memory_report::Warning) for each fault. Use [`tags`] for memory
//!   without a type to measure, and [`counters`] for memory of foreign code.
//! - Testing: a [`scope`](scopes) counts what a piece of code allocates, exactly, beside other threads.
//! - Using: [`tree::Forest`] adds up a set, [`mod@file`] reads and writes it as Firefox does, and [`mod@diff`]
//!   compares two sets. The crate [`memory_report`] contains these items. The module `live` answers requests while
//!   the program runs.
//! - Acting: [`pressure`] frees caches, and [`watching`] follows garbage collectors and allocations, as Firefox's
//!   `Debugger.Memory` does.
//!
//! # What is exact
//!
//! Computed sizes equal the requested bytes for all containers of std, with two exceptions. After removals, about
//! one hash table in a thousand is counted with half of its size. An emptied `BTreeMap` may keep one invisible leaf.
//! Measured sizes equal the usable bytes if the walk can see the start of a block. For hash tables, B-tree and list
//! nodes and some `VecDeque`s, the walk can see only addresses inside the block. It then counts the requested bytes,
//! or the usable bytes if DMD records the block.
//!
//! # Features
//!
//! - `derive` (default): `#[derive(MallocSizeOf)]`.
//! - `gzip` (default): [`file`](mod@file) reads and writes compressed files. Without it, the build takes a fifth less
//!   time.
//! - `live` (default): the module `live`, and the variable `ABOUT_MEMORY`. Without it, the program is smaller.
//! - `serde`: a [`SizeTree`](measure::SizeTree) can be serialized.
//! - `jemalloc07`, `mimalloc01`: declare these allocators, and read their statistics.
//! - `gc-arena07`: an arena of the crate `gc-arena` is a [`Collector`](watching::Collector).
//! - one feature for each crate whose types can be measured, named after the crate and its major version: see
//!   [`docs`].
//!
//! With `gzip`, `flate2` compresses files. Its default backend is written in Rust. If an application enables another
//! backend of `flate2` (`zlib-rs`, `zlib-ng`), this crate uses that backend, too.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod collect;
mod platform;
mod process_lock;
mod reporting;
mod small_sort;
mod start_up;

pub mod allocator;
pub mod docs;
#[doc(hidden)]
pub mod engine_abi;
#[cfg(feature = "live")]
pub mod live;
pub mod measure;
pub mod watching;

pub use memory_report::{self, Kind, Report, ReportSet, Units, diff, file, path_segment, tree};

pub use collect::{CollectOptions, Collection, answer_here, collect, collect_reports, pressure};
#[cfg(feature = "live")]
pub use live::listen;
pub use measure::malloc_size_of::{MallocSizeOf, computed_size_of, malloc_size_of};
pub use measure::ops::MallocSizeOfOps;
pub use measure::reading::Reading;
pub use measure::size_tree::size_tree;
#[cfg(feature = "derive")]
pub use memory_reporter_derive::MallocSizeOf;
pub use reporting::{
    LocalRegistration, MemoryReporter, Registration, Reports, amounts, counters, register_local,
    register_strong, register_weak, scopes, tag, tags,
};

/// For the macros and the derive of this crate, and for `heap-graph`, `dmd` and `memory-endpoint`. Do not use it
/// directly; it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::allocator::{CountingAllocator, DeclaredAllocator};
    pub use crate::collect::run_reporters;
    #[cfg(feature = "live")]
    #[cfg(feature = "live")]
    pub use crate::live::{__collect as collect_alone, __dump as dump};
    pub use crate::measure::mirror::as_mirror_type;
    pub use crate::measure::reach::{measure_each, measure_with};
    pub use crate::measure::reading::SealedReading;
    pub use crate::measure::stack_guard::apart;
    pub use crate::measure::stated::bytes;
    pub use crate::measure::{AddSizeOf, Edge, MallocSizeOfEach, Measurable, MeasurableIn, SkipReason};
    pub use crate::platform::limits;
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
