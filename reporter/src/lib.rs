//! Account for every byte of a Rust process.

#![deny(unsafe_code)]

mod error;
mod report;
mod report_set;
mod skipped;
mod warning;

pub mod file;
pub mod tree;

pub use error::ReadError;
pub use report::{Kind, Report, Units};
pub use report_set::{ReportSet, ReporterRun};
pub use skipped::{SkipReason, Skipped};
pub use warning::{Warning, WarningKind};
