//! `simulate`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::Outcome;
use crate::day::Day;
use crate::error::FleetError;
use crate::simulate::{SimulationOptions, simulate};

pub(super) const EXAMPLES: &str = "Examples:\n  memory-fleet simulate trial --processes 100 --days 30\n  \
                                   memory-fleet versions trial\n\nThe file truth.json lists what was planted. The same \
                                   options give the same bytes.";

/// Write the tables of processes that do not exist, with planted changes and leaks
#[derive(Args)]
pub(super) struct SimulateCommand {
    /// The new folder of the tables
    folder: PathBuf,
    /// The number of processes
    #[arg(long, default_value_t = 1000)]
    processes: u32,
    /// The number of days
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// The first day
    #[arg(long, value_name = "DATE", default_value = "2026-11-01")]
    from: Day,
    /// The minutes between two reports of a process
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// The number of paths in a report
    #[arg(long, default_value_t = 70)]
    paths: u32,
    /// The number of planted changes, leaks and growing paths
    #[arg(long, default_value_t = 20)]
    planted: u32,
    /// Other seeds give other amounts
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl SimulateCommand {
    pub(super) fn run(self) -> Result<Outcome, FleetError> {
        let Self { folder, processes, days, from, minutes, paths, planted, seed } = self;
        let options = SimulationOptions { processes, days, first: from, minutes, paths, planted, seed };
        let (truth, rows) = simulate(&folder, &options)?;
        writeln!(
            io::stdout(),
            "{rows} rows in {}; {} planted causes in {}",
            folder.join("reports").display(),
            truth.causes.len(),
            folder.join("truth.json").display()
        )
        .map_err(FleetError::Output)?;
        Ok(Outcome::Done)
    }
}
