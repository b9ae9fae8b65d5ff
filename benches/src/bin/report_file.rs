//! Measures the time from a large report file on disk to its text: `cargo run --release -p benches --bin report_file
//! -- [REPORTS]`.
//!
//! A generator with a fixed seed makes the reports, so every run measures the same file: 10 processes, paths of 4 to 9
//! names, one description. `benches/README.md` compares the figures with Firefox.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::io;
use std::time::{Duration, Instant};

use memory_reporter::{Kind, Report, ReportSet, Units, file, tree::Forest};
use tests::Random;

const ROUNDS: usize = 7;

fn synthetic(reports: u64) -> ReportSet {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let processes: Vec<_> = (0..10)
        .map(|i| match i {
            0 => "Main Process (pid 100)".to_owned(),
            _ => format!("webIsolated=https://site{i}.com (pid {})", 200 + i),
        })
        .collect();
    let mut set = ReportSet::new();
    let mut totals = vec![0; processes.len()];
    let mut path = String::new();
    for i in 0..reports as usize {
        path.clear();
        path.push_str("explicit");
        for _ in 0..2 + random.below(6) {
            path.push_str(&format!("/w{}", random.below(60)));
        }
        path.push_str(&format!("/leaf{}", random.below(100_000)));
        let process = i % processes.len();
        let amount = (8 << random.below(17)) + random.below(1000) as i64;
        totals[process] += amount;
        set.push(Report {
            process: &processes[process],
            path: &path,
            kind: Kind::Heap,
            units: Units::Bytes,
            amount,
            description: "Memory used by a synthetic thing that is described in one sentence.",
        });
    }
    for (process, total) in processes.iter().zip(totals) {
        for (path, amount) in [("heap-allocated", total / 5 * 6), ("resident", total / 2 * 3)] {
            let (kind, units, description) = (Kind::Other, Units::Bytes, "d");
            set.push(Report { process, path, kind, units, amount, description });
        }
    }
    set
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reports = std::env::args().nth(1).map_or(Ok(1_000_000), |n| n.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("synthetic.json");
    file::write(&path, &synthetic(reports))?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("{reports} reports, {} MB, median of {ROUNDS} rounds", bytes / 1_000_000);

    let (mut read, mut tree, mut text, mut all) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let set = file::read(&path)?;
        read.push(start.elapsed());
        let begun = Instant::now();
        let view = about_memory::text(&set);
        let forest: &Forest<'_> = view.forest();
        assert_eq!(forest.processes().len(), 10);
        tree.push(begun.elapsed());
        let begun = Instant::now();
        io::Write::write_fmt(&mut io::sink(), format_args!("{view}"))?;
        text.push(begun.elapsed());
        all.push(start.elapsed());
    }
    for (name, times) in [("read", read), ("tree", tree), ("text", text), ("file to text", all)] {
        println!("{name:>12} {:>7.3} s", median(times).as_secs_f64());
    }
    Ok(())
}
