//! Coverage: processes that stopped reporting, and were not replaced by another process of the same host and name.

use super::QuestionOptions;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::error::FleetError;
use crate::session::FleetSession;

/// A process is missing if it has not reported for this many of its usual intervals.
const INTERVALS: i64 = 3;

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
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
        ), places AS (
            SELECT service, host, process, max(last_ts) AS last_ts, count(*) AS lives,
                last_value(version ORDER BY last_ts) AS version,
                max(CAST(last_ts AS BIGINT) - CAST(first_ts AS BIGINT)) / greatest(max(samples) - 1, 1) AS step
            FROM lives GROUP BY 1, 2, 3
        ), newest AS (
            SELECT service, max(last_ts) AS newest, count(*) AS all_places FROM places GROUP BY service
        )
        SELECT places.service, host, process, version, CAST(last_ts AS BIGINT) AS last_seen, lives, all_places,
            CAST(newest AS BIGINT) - CAST(last_ts AS BIGINT) AS missing, step
        FROM newest JOIN places ON newest.service = places.service
        WHERE CAST(newest AS BIGINT) - CAST(last_ts AS BIGINT) > {INTERVALS} * greatest(step, 1000000)
        ORDER BY missing DESC, service, host, process"
    );
    let [mut services, mut hosts, mut processes, mut versions]: [Vec<String>; 4] = Default::default();
    let [mut seen, mut missing, mut lives]: [Vec<i64>; 3] = Default::default();
    for batch in session.query(&sql).await? {
        let batch = BatchColumns(&batch);
        for (all, name) in [
            (&mut services, "service"),
            (&mut hosts, "host"),
            (&mut processes, "process"),
            (&mut versions, "version"),
        ] {
            all.extend(batch.texts(name)?.iter().flatten().map(str::to_owned));
        }
        seen.extend(batch.whole("last_seen")?.values());
        missing.extend(batch.whole("missing")?.values());
        lives.extend(batch.whole("lives")?.values());
    }
    let title = match services.len() {
        0 => "All processes report".to_owned(),
        1 => "1 process stopped reporting".to_owned(),
        count => format!("{count} processes stopped reporting"),
    };
    let mut answer = AnswerColumns::default()
        .texts("service", &services)
        .texts("host", &hosts)
        .texts("process", processes)
        .texts("version", versions)
        .texts("last_seen", seen.into_iter().map(time))
        .numbers("hours_missing", ColumnUnit::Plain, missing.into_iter().map(|micros| micros as f64 / 3.6e9))
        .whole("starts", ColumnUnit::Plain, lives)
        .answer(title)?;
    if let (Some(service), Some(host)) = (services.first(), hosts.first()) {
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

/// A time in microseconds, such as `2026-11-22T10:00:00Z`.
pub(super) fn time(micros: i64) -> String {
    let seconds = u64::try_from(micros.div_euclid(1_000_000)).unwrap_or_default();
    let clock = seconds % crate::day::DAY_SECONDS;
    let day = crate::day::Day::at(core::time::Duration::from_secs(seconds));
    format!("{day}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
}
