//! Compares DMD's native engine with the portable engine, linked into the same program:
//!
//! ```sh
//! cargo build --release -p profilers
//! cargo build --release -p profilers --features portable-engine --target-dir target/portable-engine
//! target/release/engines target/release/linked target/portable-engine/release/linked [SCALE [ROUNDS]]
//! ```
//!
//! Every round runs each workload three times, one after another: with DMD switched off, with the native engine, and
//! with the portable engine. Both engines take the full stack of every block. The figures are CPU time. Ratios are
//! computed within a round. The output is the median over the rounds, with the minimum and the maximum.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::error::Error;
use std::process::Command;

const WORKLOADS: [&str; 3] = ["w1", "w2", "w3"];
const OPTIONS: &str = "--mode=live --stacks=full --quiet";

/// The CPU seconds of a run of the program; without options, DMD is switched off.
fn seconds(program: &str, options: Option<&str>, workload: &str, scale: f64) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.args([workload, &scale.to_string()]).env_remove("DMD").env_remove("LD_PRELOAD");
    command.envs(options.map(|options| ("DMD", options)));
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)?;
    let cpu = text.split_whitespace().find_map(|word| word.strip_prefix("cpu="));
    match cpu {
        Some(cpu) if output.status.success() => Ok(cpu.parse()?),
        _ => Err(format!("{program} {workload}: {}, {text}", output.status).into()),
    }
}

/// The median, the minimum and the maximum.
fn text(figures: &mut [f64]) -> String {
    figures.sort_by(f64::total_cmp);
    let (least, most) = (figures[0], figures[figures.len() - 1]);
    format!("{:.2} ({least:.2} to {most:.2})", figures[figures.len() / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut program = || arguments.next().ok_or("usage: engines NATIVE PORTABLE [SCALE [ROUNDS]]");
    let (native, portable) = (program()?, program()?);
    let scale: f64 = arguments.next().map_or(Ok(0.05), |scale| scale.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    if rounds == 0 {
        return Err("ROUNDS must be at least 1".into());
    }
    println!(
        "| workload | off, seconds | native relative to off | portable relative to off | portable relative to native |"
    );
    println!("|---|---|---|---|---|");
    for workload in WORKLOADS {
        let (mut offs, mut natives, mut portables, mut both) = (vec![], vec![], vec![], vec![]);
        for _ in 0..rounds {
            let off = seconds(&native, None, workload, scale)?;
            let with_native = seconds(&native, Some(OPTIONS), workload, scale)?;
            let with_portable = seconds(&portable, Some(OPTIONS), workload, scale)?;
            offs.push(off);
            natives.push(with_native / off);
            portables.push(with_portable / off);
            both.push(with_portable / with_native);
        }
        let [off, native, portable, both] =
            [offs, natives, portables, both].map(|mut figures| text(&mut figures));
        println!("| {workload} | {off} | {native} | {portable} | {both} |");
    }
    Ok(())
}
