//! Tables of processes that do not exist: the same options always give the same bytes.
//!
//! Services have versions, deployed one after the other, and processes that also restart by chance. Paths have daily
//! rhythms, fill up after a start, and differ between processes. Some causes are planted, and listed in a file.

mod amounts;
mod plan;
mod random;
mod rows;
mod truth;

use std::path::Path;

use crate::day::Day;
use crate::error::FleetError;

pub use truth::{PlantedCause, PlantedKind, SimulationTruth};

/// What to simulate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimulationOptions {
    /// The number of processes at any time.
    pub processes: u32,
    /// The number of days.
    pub days: u32,
    /// The first day.
    pub first: Day,
    /// The minutes between two reports of a process.
    pub minutes: u32,
    /// The number of paths in a report.
    pub paths: u32,
    /// The number of planted changes, leaks and growing paths.
    pub planted: u32,
    /// Other seeds give other amounts.
    pub seed: u64,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        let first = Day(20_758);
        Self { processes: 1000, days: 30, first, minutes: 10, paths: 70, planted: 20, seed: 1 }
    }
}

/// Writes the tables, and the planted causes to `truth.json` beside them. Returns the causes and the number of rows.
///
/// # Errors
///
/// Returns an error if an option is out of range, or if the folder already has reports or cannot be written.
pub fn simulate(root: &Path, options: &SimulationOptions) -> Result<(SimulationTruth, u64), FleetError> {
    let limits = [
        ("processes", options.processes, 1..=1_000_000),
        ("days", options.days, 1..=3660),
        ("minutes", options.minutes, 1..=1440),
        ("paths", options.paths, 4..=100_000),
    ];
    for (name, value, range) in limits {
        if !range.contains(&value) {
            let (least, most) = (range.start(), range.end());
            return Err(FleetError::Usage(format!("{name} must be from {least} to {most}, not {value}")));
        }
    }
    std::fs::create_dir_all(root).map_err(|error| FleetError::at(root, error))?;
    if root.join("reports").exists() {
        return Err(FleetError::at(root, "already has a table of reports; name a new folder"));
    }
    let plan = plan::SimulationPlan::new(options);
    let truth = plan.truth();
    let path = root.join("truth.json");
    std::fs::write(&path, truth.to_json()).map_err(|error| FleetError::at(&path, error))?;
    let mut rows = 0;
    for day in 0..options.days {
        for service in &plan.services {
            rows += rows::write(root, options, service, day)?;
        }
    }
    Ok((truth, rows))
}
