//! Growth: the mean of each path over all processes of a service, on the first and on the last day of the service.
//!
//! A process without the path has 0 bytes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::scope::word;
use super::{QuestionOptions, quoted};
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::day::Day;
use crate::error::FleetError;
use crate::session::FleetSession;

/// The maximum number of notes about services that have other days.
const MAX_NOTES: usize = 5;

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    let days = days_of_services(session, options).await?;
    let (first, last) = (days.keys().map(|(first, _)| first).min(), days.keys().map(|(_, last)| last).max());
    let (first, last) = (first.cloned().unwrap_or_default(), last.cloned().unwrap_or_default());
    let on = |end: fn(&(String, String)) -> &String| {
        let parts = days.iter().map(|(ends, services)| {
            let services = services.iter().map(|service| quoted(service)).collect::<Vec<_>>().join(", ");
            let start = quoted(&format!("{}T00:00:00Z", end(ends)));
            format!(
                "(service IN ({services}) AND bucket >= TIMESTAMP {start}
                AND bucket < TIMESTAMP {start} + INTERVAL '1 day')"
            )
        });
        let parts = parts.collect::<Vec<_>>().join(" OR ");
        if parts.is_empty() { "false".to_owned() } else { format!("({parts})") }
    };
    let (on_first, on_last) = (on(|ends| &ends.0), on(|ends| &ends.1));
    let (condition, lives) = (options.condition(), options.life_condition());
    // Each report of a process has the path with the most samples.
    let sql = format!(
        "WITH chosen AS (
            SELECT service, life, bucket, path, units, {on_first} AS on_first, {on_last} AS on_last,
                sum(mean * samples) AS amount, sum(samples) AS samples
            FROM buckets WHERE {lives} AND ({on_first} OR {on_last}) GROUP BY 1, 2, 3, 4, 5, 6, 7
        ), reports AS (
            SELECT service, life, bucket, on_first, on_last, max(samples) AS samples
            FROM chosen GROUP BY 1, 2, 3, 4, 5
        ), counts AS (
            SELECT service AS counted, sum(samples) FILTER (WHERE on_first) AS firsts,
                sum(samples) FILTER (WHERE on_last) AS lasts
            FROM reports GROUP BY service
        ), sums AS (
            SELECT service, path, coalesce(sum(amount) FILTER (WHERE on_first), 0) AS first,
                coalesce(sum(amount) FILTER (WHERE on_last), 0) AS last
            FROM chosen WHERE {condition} GROUP BY service, path
        )
        SELECT service, path, first / firsts AS before, last / lasts AS after,
            last / lasts - first / firsts AS growth
        FROM counts JOIN sums ON service = counted ORDER BY growth DESC, service, path"
    );
    let (mut services, mut paths) = (Vec::new(), Vec::new());
    let mut amounts: [Vec<f64>; 3] = Default::default();
    for batch in session.query(&sql).await? {
        let batch = BatchColumns(&batch);
        services.extend(batch.texts("service")?.iter().flatten().map(str::to_owned));
        paths.extend(batch.texts("path")?.iter().flatten().map(str::to_owned));
        for (all, name) in amounts.iter_mut().zip(["before", "after", "growth"]) {
            all.extend(batch.numbers(name)?.values());
        }
    }
    let [before, after, growth] = amounts;
    let shares: Vec<f64> = growth.iter().zip(&before).map(|(growth, before)| growth / before).collect();
    let title = format!("Growth per process, mean of all processes: {first} to {last}");
    let mut answer = AnswerColumns::default()
        .texts("service", &services)
        .texts("path", &paths)
        .numbers("before", ColumnUnit::Bytes, before)
        .numbers("after", ColumnUnit::Bytes, after)
        .numbers("growth", ColumnUnit::Bytes, growth.clone())
        .numbers("share", ColumnUnit::Share, shares)
        .answer(title)?;
    let others = days.iter().filter(|((from, to), _)| *from != first || *to != last);
    for ((from, to), services) in others.take(MAX_NOTES) {
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        answer.notes.push(format!("Reports of {}: {from} to {to}", services.join(", ")));
    }
    if let (Some(service), Some(path), Some(growth)) = (services.first(), paths.first(), growth.first())
        && *growth > 0.0
    {
        answer.next = ["versions", "leaks"]
            .map(|question| session.command(question, service, &format!(" --path {}", word(path))))
            .into();
    }
    Ok(answer)
}

/// The first and the last day of each service, with the services that have them.
async fn days_of_services(
    session: &FleetSession,
    options: &QuestionOptions,
) -> Result<BTreeMap<(String, String), BTreeSet<String>>, FleetError> {
    let sql = format!(
        "SELECT service, CAST(min(bucket) AS BIGINT) AS first, CAST(max(bucket) AS BIGINT) AS last
        FROM buckets WHERE {} GROUP BY service",
        options.life_condition()
    );
    let mut days: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (services, first, last) = (batch.texts("service")?, batch.whole("first")?, batch.whole("last")?);
        for row in 0..rows {
            let [first, last] = [&first, &last].map(|times| {
                let seconds = u64::try_from(times.value(row) / 1_000_000).unwrap_or_default();
                Day::at(Duration::from_secs(seconds)).to_string()
            });
            days.entry((first, last)).or_default().insert(services.value(row).to_owned());
        }
    }
    Ok(days)
}
