//! Everything about views: texts against Firefox's, diffs and limits, hostile files, the program itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assertions;
mod budget;
mod diff;
mod dmd;
mod golden;
mod hostile;
mod html;
#[cfg(target_os = "linux")]
mod live;
mod numbers;
mod program;
mod properties;
mod reach;
#[cfg(target_os = "linux")]
mod run;
mod series;
mod snapshot;
mod views;

use memory_reporter::ReportSet;

/// The text of a set, all options at their defaults.
fn shown(set: &ReportSet) -> String {
    about_memory::text(set).to_string()
}

/// A file's text around some reports.
fn document(reports: &str) -> String {
    format!("{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [{reports}]}}")
}
