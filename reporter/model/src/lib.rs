//! Memory reports as plain data: sets of reports, their trees and differences, and Firefox's file format.
//!
//! The crate measures nothing: it requests no memory figures from the system or an allocator, and contains no unsafe
//! code. `memory-reporter` collects reports from a running program and re-exports this crate, so a program that
//! reports its memory needs only `memory-reporter`. A tool that reads, compares or shows reports needs only this
//! crate.
//!
//! ```
//! use memory_report::{Kind, Report, ReportSet, Units, file, tree::Forest};
//!
//! let mut set = ReportSet::new();
//! let (process, path, description) = ("Main Process (pid 1)", "explicit/cache/keys", "Memory of the keys.");
//! set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: 30, description });
//!
//! let mut text = Vec::new();
//! file::write_to(&mut text, &set)?;
//! let read = file::read_from(&*text, &file::ReadOptions::new())?;
//! assert_eq!(Forest::new(&read).amount("explicit/cache"), Some(30));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To order a tree and to format it as text, use `about-memory`.
//!
//! # Overview
//!
//! - [`Report`] is one measurement. [`ReportSet`] holds many reports with their [`Warning`]s.
//! - [`tree`] adds up a set, [`diff`] compares two sets.
//! - [`mod@file`] reads and writes a set. Its parts are [`reader`], a bounded parser, and [`json`], which writes
//!   strings.
//! - The feature `gzip` (default) adds compressed files, by `flate2`.
//! - [`new_file`] writes files that get their final name when they are complete.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod deceptive;
mod error;
mod name_pattern;
mod path;
mod presence;
mod process_name;
mod report;
mod report_set;
mod skipped;
mod text_pool;
mod warning;

pub mod diff;
pub mod file;
pub mod json;
pub mod new_file;
pub mod reader;
pub mod tree;

pub use deceptive::is_deceptive;
pub use error::ReadError;
pub use name_pattern::NamePattern;
pub use path::path_segment;
pub use report::{Kind, Report, Units, UnknownName, amount};
pub use report_set::{ReportIter, ReportSet, ReporterRun, SetParts};
pub use skipped::{SkipReason, SkippedPart};
#[doc(hidden)]
pub use text_pool::{TextPool, TextStore};
pub use warning::{Warning, WarningKind};
