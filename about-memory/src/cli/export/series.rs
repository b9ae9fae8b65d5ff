//! Amounts over time, from report files.

use std::time::{Duration, UNIX_EPOCH};

use about_memory::export::counters as counters_of;
use about_memory::{Series, SeriesOptions};
use memory_export::chrome_trace::Counters;
use memory_report::ReportSet;

use super::super::Failure;
use super::super::input::Input;

/// The time between two points whose times are unknown.
const STEP: Duration = Duration::from_secs(1);

/// The trees and lines of each report and process. The time of a report is when its file was changed last; if these
/// times do not grow from file to file, the points are a second apart.
pub(super) fn counters(
    sources: &[Input],
    read: impl Fn(&Input) -> Result<ReportSet, Failure>,
) -> Result<Counters, Failure> {
    let mut options = SeriesOptions::default();
    options.by_process = true;
    let mut series = Series::new(options);
    for source in sources {
        series.add(source.name(), &read(source)?);
    }
    let changed = |source: &Input| {
        let time = std::fs::metadata(source.path()).ok()?.modified().ok()?;
        u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
    };
    let changed: Option<Vec<u64>> = sources.iter().map(changed).collect();
    let times = match changed.filter(|times| times.is_sorted_by(|earlier, later| earlier < later)) {
        Some(times) => times,
        None => (0..sources.len() as u64).map(|index| index * STEP.as_micros() as u64).collect(),
    };
    Ok(counters_of(&series, times))
}
