//! Amounts over time, from report files.

use std::time::UNIX_EPOCH;

use about_memory::{Series, SeriesOptions};
use memory_export::chrome_trace::Counters;
use memory_report::ReportSet;

use super::super::Failure;
use super::super::input::InputArgument;

/// Returns the amounts of trees, and of reports outside of trees, over time: in total and for each process. The time of
/// a report is its file's modification time. If these times do not grow from file to file, the points are one second
/// apart.
pub(super) fn counters(
    sources: &[InputArgument],
    read: impl Fn(&InputArgument) -> Result<ReportSet, Failure>,
) -> Result<Counters, Failure> {
    let mut series = Series::new(SeriesOptions::new().by_process(true));
    for source in sources {
        series.add(source.name(), &read(source)?);
    }
    let changed = |source: &InputArgument| {
        let time = std::fs::metadata(source.path()).ok()?.modified().ok()?;
        u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
    };
    let changed: Option<Vec<u64>> = sources.iter().map(changed).collect();
    Ok(series.counters(Series::point_times(changed, sources.len())))
}
