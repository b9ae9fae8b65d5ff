//! What this program hands to an engine of DMD.

use core::time::Duration;

use crate::reporting::isolation;

use super::driver::{CollectOptions, collect_reports};

/// Runs all reporters of the program that this copy of the crate belongs to, and drops their reports. Each reporter has
/// `milliseconds` of time; 0 sets no deadline.
pub extern "C" fn run_reporters(milliseconds: u64) {
    let mut options = CollectOptions::new();
    if milliseconds != 0 {
        options = options.deadline(Duration::from_millis(milliseconds));
    }
    // The driver catches the panics of reporters one by one; this catches all others.
    let _ = isolation::contain(|| drop(collect_reports(&options)));
}
