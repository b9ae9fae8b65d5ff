//! Compares the costs of DMD and heaptrack: `profilers [LIBRARY [SCALE [ROUNDS]]]`.
//!
//! Every round runs each program once, one after another, and compares the programs within the round, because other
//! work on the machine slows all of them down. The results are medians over the rounds.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod check;
mod program;

use std::error::Error;
use std::path::{Path, PathBuf};

use program::{Outcome, Program};

const WORKLOADS: [&str; 3] = ["w1", "w2", "w3"];
const HEAPTRACK: [&str; 2] = [
    "/usr/lib/heaptrack/libheaptrack_preload.so",
    "/usr/lib/x86_64-linux-gnu/heaptrack/libheaptrack_preload.so",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = std::env::current_exe()?.parent().map(Path::to_owned).unwrap_or_default();
    let library = arguments.next().map_or_else(|| folder.join("libdmd.so"), PathBuf::from).canonicalize()?;
    let scale: f64 = arguments.next().map_or(Ok(0.25), |scale| scale.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let output = tempfile::tempdir()?;
    let dump = output.path().join("dump.json");

    let plain = Program::new(folder.join("plain"));
    let dmd = plain.preloading(&library).with("DMD", "--mode=live --stacks=full --quiet");
    let dmd = dmd.with("PROFILERS_DUMP", &dump);
    let file = output.path().join("recording.dmdrec");
    let recording = plain.preloading(&library);
    let recording = recording
        .with("DMD", format!("--mode=live --stacks=full --quiet --record={}", file.display()))
        .with("PROFILERS_DUMP", &dump);
    let heaptrack = HEAPTRACK.iter().find(|path| Path::new(path).exists()).map(|path| {
        plain.preloading(Path::new(path)).with("DUMP_HEAPTRACK_OUTPUT", output.path().join("heaptrack"))
    });
    for workload in WORKLOADS {
        check::stacks_are_the_references(&folder, &library, &dump, workload)?;
        let counted = check::count(&folder, workload, scale)?;
        check::all_are_recorded(&plain.preloading(&library), &dump, workload, scale, &counted)?;
        let mut ratios = Ratios::default();
        let mut rivals = Ratios::default();
        let (mut recorded, mut bytes) = (Ratios::default(), 0.0);
        for _ in 0..rounds {
            let base = plain.run(workload, scale)?;
            let exact = dmd.run(workload, scale)?;
            ratios.add(&exact, &base);
            check::nothing_is_lost(&dump, &counted)?;
            recorded.add(&recording.run(workload, scale)?, &exact);
            check::nothing_is_lost(&dump, &counted)?;
            bytes = check::bytes_of_an_event(&file, &counted)?;
            if let Some(heaptrack) = &heaptrack {
                rivals.add(&heaptrack.run(workload, scale)?, &base);
            }
        }
        println!("{workload} dmd {}", ratios.text());
        println!("{workload} recording, relative to dmd: {}, {bytes:.2} bytes an event", recorded.text());
        if heaptrack.is_some() {
            println!("{workload} heaptrack {}", rivals.text());
        }
    }
    switched_off(&folder, rounds)
}

/// Prints the time that DMD adds to an allocation and its deallocation if DMD is linked but switched off. The added
/// time is the time of both calls with the program's allocator minus their time with the system's functions in the same
/// process. The same difference in the plain program is the error of the measurement.
fn switched_off(folder: &Path, rounds: usize) -> Result<(), Box<dyn Error>> {
    for name in ["linked", "plain"] {
        let program = Program::new(folder.join(name));
        let mut added = (0..rounds).map(|_| program.added_to_pair()).collect::<Result<Vec<_>, _>>()?;
        println!("{name}, switched off: {:+.2} ns for an allocation and its free", median(&mut added));
    }
    Ok(())
}

/// The ratios of a program's costs to the plain program's costs.
#[derive(Default)]
struct Ratios {
    cpu: Vec<f64>,
    peak: Vec<f64>,
}

impl Ratios {
    fn add(&mut self, measured: &Outcome, base: &Outcome) {
        self.cpu.push(measured.cpu / base.cpu);
        self.peak.push(measured.peak_kib / base.peak_kib);
    }

    fn text(&mut self) -> String {
        let (low, high) = self
            .cpu
            .iter()
            .fold((f64::INFINITY, 0f64), |(low, high), &ratio| (low.min(ratio), high.max(ratio)));
        let (cpu, peak) = (median(&mut self.cpu), median(&mut self.peak));
        format!("cpu x{cpu:.2} ({low:.2} to {high:.2}), peak x{peak:.2}")
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
