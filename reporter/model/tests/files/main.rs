//! Tests of the public API: valid and hostile report files, the trees of their reports, and diffs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod diff;
mod gzip;
mod name_patterns;
mod new_files;
mod reading;
mod sets;
mod trees;
mod writing;

use memory_report::file::{self, ReadOptions};
use memory_report::{ReadError, ReportSet};

fn read(bytes: impl AsRef<[u8]>) -> Result<ReportSet, ReadError> {
    file::read_from(bytes.as_ref(), &ReadOptions::default())
}

/// The error message.
fn error(bytes: impl AsRef<[u8]>) -> String {
    read(bytes).expect_err("the file should be rejected").to_string()
}

/// A file with these elements of `reports`.
fn document(reports: &str) -> String {
    format!("{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [{reports}]}}")
}

/// A valid report with one more member, which replaces an earlier member of the same name.
fn report(member: &str) -> String {
    format!(
        "{{\"process\": \"p\", \"path\": \"a/b\", \"kind\": 2, \"units\": 0, \"amount\": 7, \
         \"description\": \"d\"{}{member}}}",
        if member.is_empty() { "" } else { ", " }
    )
}
