//! The amounts of a path.

use core::f64::consts::TAU;

use super::plan::{PlannedLife, PlannedPath};
use super::random::{bits, normal};
use crate::day::DAY_SECONDS;

/// The deviation between processes, and between two reports of a process.
const BETWEEN_PROCESSES: f64 = 0.05;
const BETWEEN_REPORTS: f64 = 0.02;
/// The seconds after which a path that fills up has two thirds of its amount.
const WARM_UP: f64 = 7200.0;

/// The factor of a process for a path.
pub(super) fn of_process(seed: u64, service: u64, path: u64, process: u64) -> f64 {
    1.0 + BETWEEN_PROCESSES * normal(bits(seed, &[10, service, path, process]))
}

/// The factor of a time for a path.
pub(super) fn of_time(path: &PlannedPath, second: i64) -> f64 {
    let share = second as f64 / DAY_SECONDS as f64 - path.phase;
    1.0 + path.rhythm * (share * TAU).cos()
}

/// The bytes of a path in a report.
pub(super) fn bytes(path: &PlannedPath, factor: f64, life: &PlannedLife, second: i64, noise: u64) -> f64 {
    let age = (second - life.start) as f64;
    let mut amount = path.base * factor;
    if path.warms_up {
        amount *= 1.0 - 0.5 * (-age / WARM_UP).exp();
    }
    if let Some((_, share)) = path.change.filter(|(since, _)| life.version >= *since) {
        amount *= 1.0 + share;
    }
    amount *= 1.0 + BETWEEN_REPORTS * normal(noise);
    if let Some((_, rate)) = path.leak.filter(|(since, _)| life.version >= *since) {
        amount += rate * age;
    }
    (amount + path.growth * second.max(0) as f64).max(0.0)
}
