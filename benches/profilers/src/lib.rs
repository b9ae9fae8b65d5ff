//! The workloads for heap profilers. This library selects no allocator: each binary beside it is the same program with
//! another allocator.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod churn;
mod documents;
#[allow(unsafe_code, reason = "reads times from the system, and looks up a profiler in the loader")]
mod outcome;
#[allow(unsafe_code, reason = "calls allocators")]
mod pairs;

use std::any::Any;
use std::error::Error;

/// The result of a workload, and the data that is live at its end.
type Done = (u64, Box<dyn Any>);

/// Runs `PROGRAM WORKLOAD [SCALE]`, and prints the costs so far before the process does other work at its exit. Then
/// calls `at_end`, while the workload's blocks are still live.
///
/// # Errors
///
/// Returns an error if an argument is bad, or if a system call fails.
pub fn run(at_end: impl FnOnce()) -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let workload = arguments
        .next()
        .ok_or("usage: PROGRAM WORKLOAD [SCALE]; the workload is w1, w2, w3, nothing or pairs")?;
    let scale: f64 = arguments.next().map_or(Ok(1.0), |scale| scale.parse())?;
    let (sum, alive): Done = match workload.as_str() {
        "w1" => churn::one_thread(scale),
        "w2" => churn::four_threads(scale),
        "w3" => documents::parse_and_clone(scale)?,
        "nothing" => (0, Box::new(())),
        "pairs" => {
            pairs::print();
            return Ok(());
        }
        other => return Err(format!("unknown workload {other}").into()),
    };
    outcome::print(&workload, sum)?;
    at_end();
    drop(alive);
    Ok(())
}
