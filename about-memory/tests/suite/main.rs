//! Tests of the views: comparison with Firefox's texts, diffs and limits, hostile files, the program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assertions;
#[cfg(target_os = "linux")]
mod attach;
mod budget;
mod diff;
mod dmd;
mod export;
mod golden;
mod heap_pages;
#[cfg(target_os = "linux")]
mod heaptrack;
mod hostile;
mod html;
mod json_output;
mod json_schema;
mod kinds;
#[cfg(target_os = "linux")]
mod live;
mod mcp;
#[cfg(target_os = "linux")]
mod merged;
mod numbers;
mod program;
mod reach;
mod recordings;
#[cfg(target_os = "linux")]
mod run;
mod series;
mod serve;
mod session;
mod snapshot;
mod tables;
mod typed;
mod views;

use memory_reporter::ReportSet;

/// Returns the text of a set with default options.
fn shown(set: &ReportSet) -> String {
    about_memory::text(set).to_string()
}

/// Returns the text of a file with these reports.
fn document(reports: &str) -> String {
    format!("{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [{reports}]}}")
}
