//! A series as counters over time.

use memory_export::chrome_trace::{Counter, Counters};
use memory_report::Units;

use super::Series;

/// The time between two points with unknown times, in microseconds.
const STEP: u64 = 1_000_000;

impl Series {
    /// Returns the rows as counters. `times` contains the time of each point, in microseconds.
    pub fn counters(&self, times: Vec<u64>) -> Counters {
        let counters = self.rows().into_iter().map(|row| Counter {
            process: row.process.unwrap_or_default().to_owned(),
            path: row.path.to_owned(),
            unit: match row.units {
                Units::Bytes => "bytes",
                Units::Percentage => "hundredths of a per cent",
                _ => "count",
            }
            .to_owned(),
            amounts: row.amounts.to_vec(),
        });
        Counters { times, counters: counters.collect() }
    }

    /// Returns the times of the points of a series, in microseconds. Returns `known` if it has a time for each point
    /// and the times ascend. Otherwise the points are one second apart.
    pub fn point_times(known: Option<Vec<u64>>, points: usize) -> Vec<u64> {
        let ascend =
            |times: &Vec<u64>| times.len() == points && times.is_sorted_by(|earlier, later| earlier < later);
        known.filter(ascend).unwrap_or_else(|| (0..points as u64).map(|point| point * STEP).collect())
    }
}
