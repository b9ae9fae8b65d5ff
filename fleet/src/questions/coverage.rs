//! Coverage: processes that stopped reporting, and were not replaced.
//!
//! A place is a host and a name: a process that starts again has the same place. In containers, a process that starts
//! again often has a new host. So a new place replaces a place of the same name that ended at about the same time.

use std::collections::BTreeMap;

use super::QuestionOptions;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::{BatchColumns, known};
use crate::error::FleetError;
use crate::session::FleetSession;
use crate::statistics::median;

/// A process is missing if it has not reported for this many of its usual intervals.
const INTERVALS: i64 = 3;
/// A process replaces another one if its first report is at most this time before or after the last report of the other
/// one, or at most [`INTERVALS`] intervals.
const REPLACED_MICROS: i64 = 3_600_000_000;

struct ProcessPlace {
    service: String,
    host: String,
    process: String,
    version: String,
    first: i64,
    last: i64,
    lives: i64,
    /// The time between two reports; `None` for a single report.
    step: Option<f64>,
}

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    // All versions are read: a place whose version is a later one now is not missing.
    let all = QuestionOptions { version: None, ..options.clone() };
    let (mut missing, replaced) = missing_places(places(session, &all).await?);
    missing.retain(|(place, _)| options.version.as_ref().is_none_or(|version| *version == place.version));
    missing.sort_by(|(one, time), (other, other_time)| {
        let key = |place: &ProcessPlace| (place.service.clone(), place.host.clone(), place.process.clone());
        other_time.cmp(time).then_with(|| key(one).cmp(&key(other)))
    });
    let title = match missing.len() {
        0 => "All processes report".to_owned(),
        1 => "1 process stopped reporting".to_owned(),
        count => format!("{count} processes stopped reporting"),
    };
    let places = || missing.iter().map(|(place, _)| place);
    let mut answer = AnswerColumns::default()
        .texts("service", places().map(|place| &place.service))
        .texts("host", places().map(|place| &place.host))
        .texts("process", places().map(|place| &place.process))
        .texts("version", places().map(|place| &place.version))
        .texts("last_seen", places().map(|place| time(place.last)))
        .numbers("hours_missing", ColumnUnit::Plain, missing.iter().map(|(_, micros)| *micros as f64 / 3.6e9))
        .whole("starts", ColumnUnit::Plain, places().map(|place| place.lives))
        .answer(title)?;
    if replaced > 0 {
        answer.notes.push(format!(
            "{replaced} processes ended, and are not missing: a process of the same name started on another host."
        ));
    }
    if let Some((ProcessPlace { service, host, .. }, _)) = missing.first() {
        answer.notes.push(format!(
            "A process is missing after {INTERVALS} of its intervals without a report. A restart is not missing."
        ));
        let sql = format!(
            "SELECT path, highest FROM buckets WHERE service = {} AND host = {} ORDER BY bucket DESC, highest DESC LIMIT 20",
            super::quoted(service),
            super::quoted(host)
        );
        let root = super::scope::word(&session.root().to_string_lossy());
        answer.next = vec![format!("memory-fleet query {root} {}", super::scope::word(&sql))];
    }
    Ok(answer)
}

/// All places.
async fn places(session: &FleetSession, options: &QuestionOptions) -> Result<Vec<ProcessPlace>, FleetError> {
    let condition = options.life_condition();
    // The interval of a process is the time between its first and last report, divided by the number of its reports.
    // Each report has the path with the most samples.
    let sql = format!(
        "WITH paths AS (
            SELECT service, host, process, life, path, max(version) AS version, min(first_ts) AS first_ts,
                max(last_ts) AS last_ts, sum(samples) AS samples
            FROM buckets WHERE {condition} AND starts_with(path, 'explicit/') GROUP BY 1, 2, 3, 4, 5
        ), lives AS (
            SELECT service, host, process, life, max(version) AS version, min(first_ts) AS first_ts,
                max(last_ts) AS last_ts, max(samples) AS samples
            FROM paths GROUP BY 1, 2, 3, 4
        )
        SELECT service, host, process, CAST(min(first_ts) AS BIGINT) AS first, CAST(max(last_ts) AS BIGINT) AS last,
            count(*) AS lives, last_value(version ORDER BY last_ts) AS version,
            max(CAST(CAST(last_ts AS BIGINT) - CAST(first_ts AS BIGINT) AS DOUBLE) / (samples - 1))
                FILTER (WHERE samples > 1) AS step
        FROM lives GROUP BY 1, 2, 3"
    );
    let mut places = Vec::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let [service, host, process, version] =
            ["service", "host", "process", "version"].map(|name| batch.texts(name));
        let (service, host, process, version) = (service?, host?, process?, version?);
        let [first, last, lives] = ["first", "last", "lives"].map(|name| batch.whole(name));
        let (first, last, lives, step) = (first?, last?, lives?, batch.numbers("step")?);
        places.extend((0..rows).map(|row| ProcessPlace {
            service: service.value(row).to_owned(),
            host: host.value(row).to_owned(),
            process: process.value(row).to_owned(),
            version: version.value(row).to_owned(),
            first: first.value(row),
            last: last.value(row),
            lives: lives.value(row),
            step: known(&step, row),
        }));
    }
    Ok(places)
}

/// The missing places with the time since their last report, and the number of replaced places.
fn missing_places(places: Vec<ProcessPlace>) -> (Vec<(ProcessPlace, i64)>, usize) {
    let mut services: BTreeMap<String, Vec<ProcessPlace>> = BTreeMap::new();
    for place in places {
        services.entry(place.service.clone()).or_default().push(place);
    }
    let (mut missing, mut replaced) = (Vec::new(), 0);
    for mut places in services.into_values() {
        let start = places.iter().map(|place| place.first).min().unwrap_or_default();
        let newest = places.iter().map(|place| place.last).max().unwrap_or_default();
        let steps: Vec<f64> = places.iter().filter_map(|place| place.step).collect();
        // A single report has no interval. Without any interval, nothing is known to be late.
        let usual = if steps.is_empty() { f64::INFINITY } else { median(steps) };
        let patience = |place: &ProcessPlace| INTERVALS as f64 * place.step.unwrap_or(usual).max(1e6);
        // The starts of places that were not there from the beginning, by name.
        let mut starts: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        places.sort_by_key(|place| place.first);
        for place in &places {
            if (place.first - start) as f64 > patience(place) {
                starts.entry(place.process.clone()).or_default().push(place.first);
            }
        }
        places.sort_by_key(|place| place.last);
        for place in places {
            let patience = patience(&place);
            if (newest - place.last) as f64 <= patience {
                continue;
            }
            let window = (patience as i64).max(REPLACED_MICROS);
            let starts = starts.entry(place.process.clone()).or_default();
            // A place does not replace itself, and replaces one other place.
            let start = starts.iter().position(|start| {
                *start > place.first && (place.last - window..=place.last + window).contains(start)
            });
            match start {
                Some(index) => {
                    starts.remove(index);
                    replaced += 1;
                }
                None => {
                    let time = newest - place.last;
                    missing.push((place, time));
                }
            }
        }
    }
    (missing, replaced)
}

/// A time in microseconds, such as `2026-11-22T10:00:00Z`.
pub(super) fn time(micros: i64) -> String {
    let seconds = u64::try_from(micros.div_euclid(1_000_000)).unwrap_or_default();
    let clock = seconds % crate::day::DAY_SECONDS;
    let day = crate::day::Day::at(core::time::Duration::from_secs(seconds));
    format!("{day}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
}
