//! Measures the time to write the Parquet table of reports: `cargo run --release -p benches --bin tables --
//! [REPORTS]`.
//!
//! The reports come from 10 processes, one process after the other. The paths are random: they have 4 to 9 names, and
//! nearly all are different.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

use memory_export::parquet::{self, ParquetOptions, ParquetRun};
use memory_reporter::{Kind, Report, ReportSet, Units};
use tests::Random;

const ROUNDS: usize = 7;

fn main() {
    let reports: usize = std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number"));
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut set = ReportSet::new();
    for index in 0..reports {
        let mut path = "explicit".to_owned();
        for _ in 0..2 + random.below(6) {
            path += &format!("/w{}", random.below(60));
        }
        path += &format!("/leaf{}", random.below(100_000));
        set.push(Report {
            process: &format!("app (pid {})", 100 + index * 10 / reports),
            path: &path,
            kind: Kind::Heap,
            units: Units::Bytes,
            amount: (8 << random.below(17)) + random.below(1000) as i64,
            description: "Memory used by a synthetic thing that is described in one sentence.",
        });
    }
    let run = ParquetRun::new("bench", Duration::from_secs(1_763_856_000)).with_id_from_reports(&set);
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let mut file = Vec::new();
        let start = Instant::now();
        parquet::reports(&[(&run, &set)], &ParquetOptions::new(), &mut file)
            .expect("writing to a vector does not fail");
        times.push(start.elapsed());
        bytes = file.len();
    }
    times.sort_unstable();
    let median = times[ROUNDS / 2].as_secs_f64();
    println!("{reports} rows: {median:.2} s, {:.0} rows a second, {bytes} bytes", reports as f64 / median);
}
