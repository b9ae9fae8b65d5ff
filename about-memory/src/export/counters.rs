//! A series as counters over time.

use memory_export::chrome_trace::{Counter, Counters};
use memory_report::Units;

use crate::Series;

/// The rows of a series as counters. `times` has the time of each of its points, in microseconds.
pub fn counters(series: &Series, times: Vec<u64>) -> Counters {
    let counters = series.rows().into_iter().map(|row| Counter {
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
