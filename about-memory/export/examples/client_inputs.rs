//! Writes files for real clients, and the sums that clients must show: `client_inputs FOLDER`.
//!
//! Each input becomes a file in each format that can hold it. `expected.json` contains, for each input: the sums of its
//! values over all blocks and for each kind, the files, and the error of each format that rejects the input.
//! `tests/clients/check` opens the files in their clients and compares the sums.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "an example that tests run")]

#[path = "../tests/suite/inputs.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod inputs;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

use memory_export::open_metrics::{self, MetricsForm};
use memory_export::{ExportError, StackProfile, dhat, heaptrack, pprof, speedscope};
use memory_report::{Kind, Report, ReportSet, Units};
use serde_json::{Map, Value as Json, json};

/// The sums of blocks and bytes of each kind. Blocks without a kind have the key `""`.
fn by_kind(stacks: &StackProfile) -> Json {
    let mut sums: BTreeMap<&str, [i64; 2]> = BTreeMap::new();
    for sample in stacks.samples() {
        let sums = sums.entry(stacks.labels(sample.labels).kind.unwrap_or_default()).or_default();
        sums.iter_mut().zip(sample.amounts).for_each(|(sum, amount)| *sum += amount);
    }
    json!(sums)
}

/// Writes the files of some stacks. Lists the formats that reject them.
fn profiles(folder: &Path, name: &str, stacks: &StackProfile) -> Json {
    type Write<'a> = &'a dyn Fn(BufWriter<File>) -> Result<(), ExportError>;
    let formats: [(&str, Write<'_>); 4] = [
        ("pb.gz", &|out| pprof::write(stacks, &pprof::PprofOptions::new(), out)),
        ("speedscope.json", &|out| {
            speedscope::write(stacks, &speedscope::SpeedscopeOptions::new().small(0), out)
        }),
        ("heaptrack", &|out| heaptrack::write(stacks, &heaptrack::HeaptrackOptions::new(), out).map(drop)),
        ("dhat.json", &|out| dhat::write(stacks, out)),
    ];
    let (mut files, mut refused) = (Map::new(), Map::new());
    for (format, write) in formats {
        let file = format!("{name}.{format}");
        let path = folder.join(&file);
        match write(BufWriter::new(File::create(&path).unwrap())) {
            Ok(()) => drop(files.insert(format.to_owned(), json!(file))),
            Err(error) => {
                fs::remove_file(path).unwrap();
                refused.insert(format.to_owned(), json!(error.to_string()));
            }
        }
    }
    let total = |value| i64::try_from(stacks.total(value).unwrap()).unwrap();
    let totals = inputs::LIVE.map(total);
    json!({ "blocks and bytes": totals, "by kind": by_kind(stacks), "files": files, "refused": refused })
}

fn reports(all: impl Iterator<Item = (String, Kind, i64)>) -> ReportSet {
    let mut set = ReportSet::new();
    for (path, kind, amount) in all {
        let (process, units) = ("Main \"Process\" \\ (pid 1)", Units::Bytes);
        set.push(Report { process, path: &path, kind, units, amount, description: "A part." });
    }
    set
}

/// Writes the metrics of reports, and the sums of their bytes by kind.
fn metrics(folder: &Path, name: &str, set: &ReportSet) -> Json {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for report in set.iter() {
        let kind = match report.kind {
            Kind::Heap => "heap",
            Kind::NonHeap => "nonheap",
            Kind::Other => "other",
        };
        *sums.entry(kind).or_default() += report.amount;
    }
    let mut files = Map::new();
    for (format, form) in [("om", MetricsForm::OpenMetrics), ("prom", MetricsForm::Prometheus)] {
        let file = format!("{name}.{format}");
        let out = File::create(folder.join(&file)).unwrap();
        open_metrics::write(set, &open_metrics::OpenMetricsOptions::new().form(form), out).unwrap();
        files.insert(format.to_owned(), json!(file));
    }
    json!({ "by kind": sums, "files": files })
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: client_inputs FOLDER");
        return ExitCode::from(2);
    };
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).unwrap();
    let mut expected = Map::new();
    for (name, stacks) in [
        ("empty", inputs::empty()),
        ("one", inputs::one_block()),
        ("hostile", inputs::hostile()),
        ("million", inputs::stacks(1_000_000)),
        ("beyond", inputs::with_amounts(1, inputs::BEYOND)),
        ("below", inputs::with_amounts(-2, -50)),
    ] {
        expected.insert(name.to_owned(), profiles(folder, name, &stacks));
    }
    let kinds = [Kind::Heap, Kind::NonHeap, Kind::Other];
    let mut metric = Map::new();
    let hostile = inputs::HOSTILE.iter().enumerate();
    let hostile = hostile.map(|(at, name)| (format!("tree/a{name}"), kinds[at % 3], 100 + at as i64));
    let path = |at: usize| format!("tree/{}/{}/{at}", at % 7, at % 1000);
    let million = (0..1_000_000).map(|at| (path(at), kinds[at % 3], at as i64));
    for (name, set) in [
        ("empty", ReportSet::new()),
        ("one", reports([("tree/one".to_owned(), Kind::Heap, 100)].into_iter())),
        ("hostile", reports(hostile)),
        ("million", reports(million)),
        // A client's numbers are doubles. This amount is exact as a double.
        ("beyond", reports([("tree/one".to_owned(), Kind::Other, (1 << 53) + 2)].into_iter())),
        ("below", reports([("line".to_owned(), Kind::Other, -100)].into_iter())),
    ] {
        metric.insert(name.to_owned(), metrics(folder, name, &set));
    }
    let expected = json!({ "profiles": expected, "metrics": metric });
    fs::write(folder.join("expected.json"), serde_json::to_vec_pretty(&expected).unwrap()).unwrap();
    ExitCode::SUCCESS
}
