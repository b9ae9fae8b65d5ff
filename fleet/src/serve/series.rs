//! The amounts of a path over time, with the versions as marks, and the processes that hold most.

use serde_json::{Value, json};

use super::api::ProcessName;
use super::cells::{MAX_TEXT, cut};
use crate::batch_columns::{BatchColumns, known};
use crate::buckets::BUCKET_SECONDS;
use crate::error::FleetError;
use crate::questions::{QuestionOptions, deployments, quoted};
use crate::session::FleetSession;

/// The maximum number of points of a line.
pub(super) const MAX_TIMES: i64 = 400;
/// The maximum number of marks.
const MAX_MARKS: usize = 50;
/// The number of listed processes.
const MAX_PROCESSES: usize = 20;

/// The time between two points in microseconds: a multiple of a bucket.
fn step(session: &FleetSession) -> i64 {
    let days = || session.measured().iter().map(|file| i64::from(file.day.0));
    let (first, last) = (days().min().unwrap_or_default(), days().max().unwrap_or_default());
    let bucket = i64::try_from(BUCKET_SECONDS).unwrap_or(i64::MAX);
    let buckets = (last - first + 1) * 86_400 / bucket;
    (buckets / MAX_TIMES + 1) * bucket * 1_000_000
}

/// The amounts of each process at each time; the path's parts are added.
fn amounts(condition: &str, step: i64) -> String {
    format!(
        "paths AS (
            SELECT CAST(bucket AS BIGINT) / {step} * {step} AS at, life, path,
                sum(mean * samples) / sum(samples) AS amount
            FROM buckets WHERE {condition} GROUP BY 1, 2, 3
        ), lives AS (SELECT at, life, sum(amount) AS amount FROM paths GROUP BY 1, 2)"
    )
}

fn process_condition(name: &ProcessName) -> String {
    let ProcessName { host, process, pid } = name;
    // In the table of reports, an unknown host or id is null.
    let pid = match pid {
        Some(0) => " AND coalesce(pid, 0) = 0".to_owned(),
        Some(pid) => format!(" AND pid = {pid}"),
        None => String::new(),
    };
    let host = match host.as_str() {
        "" => "coalesce(host, '') = ''".to_owned(),
        host => format!("host = {}", quoted(host)),
    };
    format!("{host} AND process = {}{pid}", quoted(process))
}

/// The mean and the highest amount of the processes, and the amount of one process.
pub(super) async fn series(
    session: &FleetSession,
    options: &QuestionOptions,
    process: Option<&ProcessName>,
) -> Result<Value, FleetError> {
    let (step, condition) = (step(session), options.condition());
    let sql = format!(
        "WITH {} SELECT at, count(*) AS processes, avg(amount) AS mean, max(amount) AS highest
        FROM lives GROUP BY 1 ORDER BY 1 LIMIT {}",
        amounts(&condition, step),
        MAX_TIMES + 1
    );
    let [mut times, mut processes] = [Vec::new(), Vec::new()];
    let [mut mean, mut highest] = [Vec::new(), Vec::new()];
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (ats, counts) = (batch.whole("at")?, batch.whole("processes")?);
        let (means, most) = (batch.numbers("mean")?, batch.numbers("highest")?);
        for row in 0..rows {
            times.push(ats.value(row));
            processes.push(counts.value(row));
            mean.push(known(&means, row));
            highest.push(known(&most, row));
        }
    }
    let mut lines = vec![
        json!({ "name": "mean of the processes", "amounts": mean }),
        json!({ "name": "highest process", "amounts": highest }),
    ];
    if let Some(name) = process {
        let condition = format!("{condition} AND {}", process_condition(name));
        let sql =
            format!("WITH {} SELECT at, max(amount) AS own FROM lives GROUP BY 1", amounts(&condition, step));
        let mut own: Vec<Option<f64>> = vec![None; times.len()];
        for batch in session.query(&sql).await? {
            let rows = batch.num_rows();
            let batch = BatchColumns(&batch);
            let (ats, amounts) = (batch.whole("at")?, batch.numbers("own")?);
            for row in 0..rows {
                if let Ok(place) = times.binary_search(&ats.value(row)) {
                    own[place] = known(&amounts, row);
                }
            }
        }
        lines
            .insert(0, json!({ "name": cut(&format!("{} on {}", name.process, name.host)), "amounts": own }));
    }
    let marks = match &options.service {
        None => Vec::new(),
        Some(service) => {
            let all = QuestionOptions { version: None, ..options.clone() };
            let deployed = deployments(session, &all).await?.remove(service).unwrap_or_default();
            let first = deployed.len().saturating_sub(MAX_MARKS);
            deployed[first..]
                .iter()
                .map(|(time, version)| json!({ "time": time / 1000, "text": cut(version) }))
                .collect()
        }
    };
    let times: Vec<i64> = times.iter().map(|micros| micros / 1000).collect();
    Ok(json!({ "times": times, "processes": processes, "lines": lines, "marks": marks }))
}

/// The processes that hold most of a path in their last bucket.
pub(super) async fn largest(session: &FleetSession, options: &QuestionOptions) -> Result<Value, FleetError> {
    let condition = options.condition();
    let sql = format!(
        "WITH last AS (SELECT life AS of_life, max(bucket) AS last_bucket FROM buckets WHERE {condition} GROUP BY life),
        paths AS (
            SELECT service, host, process, pid, version, life, path,
                sum(mean * samples) / sum(samples) AS amount, max(last_ts) AS seen
            FROM last JOIN buckets ON of_life = life AND last_bucket = bucket
            WHERE {condition} GROUP BY 1, 2, 3, 4, 5, 6, 7
        )
        SELECT service, host, process, pid, version, CAST(max(seen) AS BIGINT) AS seen, sum(amount) AS amount
        FROM paths GROUP BY service, host, process, pid, version, life
        ORDER BY amount DESC, host, pid LIMIT {MAX_PROCESSES}"
    );
    let mut found = Vec::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let [services, hosts, processes, versions] =
            ["service", "host", "process", "version"].map(|name| batch.texts(name));
        let (services, hosts, processes, versions) = (services?, hosts?, processes?, versions?);
        let (pids, seen, amounts) = (batch.whole("pid")?, batch.whole("seen")?, batch.numbers("amount")?);
        for row in 0..rows {
            // A cut name would name another process.
            let texts = [&services, &hosts, &processes].map(|texts| texts.value(row));
            if texts.iter().any(|text| text.chars().count() > MAX_TEXT) {
                continue;
            }
            found.push(json!({
                "service": texts[0], "host": texts[1], "process": texts[2], "pid": pids.value(row),
                "version": cut(versions.value(row)), "seen": seen.value(row) / 1000, "amount": known(&amounts, row),
            }));
        }
    }
    Ok(json!({ "processes": found }))
}

pub(super) fn named(options: &QuestionOptions, process: &ProcessName) -> String {
    let service =
        options.service.as_ref().map_or(String::new(), |name| format!(" AND service = {}", quoted(name)));
    format!("{}{service}", process_condition(process))
}
