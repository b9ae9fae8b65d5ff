//! Memory reports as plain data: sets of reports, their trees and differences, and Firefox's file format.
//!
//! The crate measures nothing: it asks neither the system nor an allocator about memory, and contains no unsafe
//! code. `memory-reporter` collects reports from a running program and re-exports this crate, so a program that
//! reports its memory needs only that one. A tool that reads, compares or shows reports needs only this one.
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
//! What it does not do: order and format a tree as text (`about-memory` does).
//!
//! # How it hangs together
//!
//! - [`Report`] is the datum, [`ReportSet`] many of them with their [`Warning`]s.
//! - [`tree`] adds a set up, [`diff`] compares two sets.
//! - [`mod@file`] reads and writes a set; [`reader`] is the bounded parser below it, and [`json`] writes texts.
//! - The feature `gzip` (default) reads and writes compressed files, by `flate2`.
//! - [`new_file`] writes files that have their name once they are whole.

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
pub use warning::{Warning, WarningKind};
