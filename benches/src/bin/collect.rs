//! Collects a million reports in one process, and measures time and memory.
//!
//! `cargo run --release -p benches --bin collect`

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::time::Instant;

use memory_reporter::{
    Collection, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reports, amounts, collect_report,
};

memory_reporter::global_allocator!(std::alloc::System);

const REPORTS: usize = 1_000_000;
const ROUNDS: usize = 7;

/// The data of a program with very many parts: the reporter measures and reports each part.
struct Parts(Vec<String>);

impl MemoryReporter for Parts {
    fn collect_reports(&self, out: &mut Reports) {
        for (i, part) in self.0.iter().enumerate() {
            let path = format!("explicit/tables/table({})/columns/column({})/data", i / 1000, i % 1000);
            collect_report!(out, path, Heap, part, "Memory used by the data of a column.");
        }
    }
}

fn main() {
    let parts = Parts((0..REPORTS).map(|i| format!("data of column {i}")).collect());
    let resident = amounts::resident().unwrap_or(0);
    let mut seconds = Vec::new();
    let mut held = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let reports = Collection::new().with(&parts).collect();
        seconds.push(start.elapsed().as_secs_f64());
        assert_eq!(reports.len(), REPORTS);
        assert!(reports.warnings().is_empty());
        held = reports.size_of_excluding_this(&mut MallocSizeOfOps::computed());
    }
    seconds.sort_by(f64::total_cmp);
    let peak = amounts::resident_peak().unwrap_or(0);
    println!(
        "{REPORTS} reports, {ROUNDS} rounds: median {:.3} s, fastest {:.3} s",
        seconds[ROUNDS / 2],
        seconds[0]
    );
    println!(
        "the set holds {:.1} MB; the process grew by {:.1} MB at its peak",
        held as f64 / 1e6,
        peak.saturating_sub(resident) as f64 / 1e6
    );
}
