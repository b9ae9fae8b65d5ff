//! Budgets: the processes that exceed the limits of a file, as `about-memory check` reads it.
//!
//! Each bucket of a process is checked by itself: the sum of amounts of different days would exceed limits that the
//! process never exceeded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use about_memory::Budget;
use memory_report::{Kind, Report, ReportSet, Units};

use super::QuestionOptions;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::error::FleetError;
use crate::session::FleetSession;

/// The number of processes whose reports are in memory together.
const BATCH_LIVES: usize = 100;

/// A limit that processes of a service exceed.
#[derive(Default)]
struct ExceededLimit {
    line: usize,
    processes: i64,
    /// The process and bucket with the largest amount.
    host: String,
    pid: i64,
    outcome: String,
    amount: Option<i128>,
}

pub(super) async fn ask(
    session: &FleetSession,
    options: &QuestionOptions,
    file: &Path,
) -> Result<Answer, FleetError> {
    let text = fs::read_to_string(file).map_err(|error| FleetError::at(file, error))?;
    let budget = Budget::parse(&text).map_err(|error| FleetError::at(file, error))?;
    let sql = format!(
        "SELECT life, min(service) AS service, min(host) AS host, min(process) AS process, min(pid) AS pid,
            max(bucket) AS last FROM buckets WHERE {} GROUP BY life ORDER BY service, host, pid, life",
        options.life_condition()
    );
    let mut lives = Vec::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let columns = BatchColumns(&batch);
        let (services, hosts, processes) =
            (columns.texts("service")?, columns.texts("host")?, columns.texts("process")?);
        let (pids, ids) = (columns.whole("pid")?, columns.lives()?);
        for row in 0..rows {
            lives.push((
                ids.value(row),
                services.value(row).to_owned(),
                hosts.value(row).to_owned(),
                processes.value(row).to_owned(),
                pids.value(row),
            ));
        }
    }
    let checked = lives.len();
    let mut exceeded: BTreeMap<(String, String), ExceededLimit> = BTreeMap::new();
    for lives in lives.chunks(BATCH_LIVES) {
        let sets = highest(session, lives.iter().map(|life| life.0)).await?;
        for (life, service, host, process, pid) in lives {
            let process = format!("{process} (pid {pid})");
            let mut counted = BTreeSet::new();
            for (_, paths) in sets.range((*life, i64::MIN)..=(*life, i64::MAX)) {
                let mut set = ReportSet::new();
                for (path, kind, units, amount) in paths {
                    let (kind, units) = (*kind, *units);
                    set.push(Report {
                        process: &process,
                        path,
                        kind,
                        units,
                        amount: *amount,
                        description: "",
                    });
                }
                for check in budget.check(&set).into_iter().filter(about_memory::BudgetCheck::failed) {
                    let key = (service.clone(), check.limit.to_string());
                    let amount = check.verdict.as_ref().ok().and_then(|outcome| outcome.second);
                    let limit = exceeded.entry(key.clone()).or_default();
                    limit.processes += i64::from(counted.insert(key));
                    if limit.host.is_empty() || amount > limit.amount {
                        limit.line = check.line;
                        (limit.host, limit.pid) = (host.clone(), *pid);
                        (limit.outcome, limit.amount) = (check.to_string(), amount);
                    }
                }
            }
        }
    }
    let mut rows: Vec<_> = exceeded.into_iter().collect();
    rows.sort_by(|(one_key, one), (other_key, other)| {
        other.processes.cmp(&one.processes).then_with(|| one_key.cmp(other_key))
    });
    let title = match rows.len() {
        0 => format!("All {checked} processes keep to {}", file.display()),
        1 => format!("1 limit of {} does not hold", file.display()),
        count => format!("{count} limits of {} do not hold", file.display()),
    };
    let mut answer = AnswerColumns::default()
        .texts("service", rows.iter().map(|((service, _), _)| service))
        .whole("line", ColumnUnit::Plain, rows.iter().map(|(_, limit)| limit.line as i64))
        .whole("processes", ColumnUnit::Plain, rows.iter().map(|(_, limit)| limit.processes))
        .texts("host", rows.iter().map(|(_, limit)| &limit.host))
        .whole("pid", ColumnUnit::Plain, rows.iter().map(|(_, limit)| limit.pid))
        .texts("largest_outcome", rows.iter().map(|(_, limit)| &limit.outcome))
        .answer(title)?;
    answer.notes.push(format!(
        "{checked} processes, with the highest amounts of each {} hours. processes: those that exceed the limit.",
        crate::buckets::BUCKET_SECONDS / 3600
    ));
    if let Some(((service, _), _)) = rows.first() {
        answer.next =
            vec![session.command("outliers", service, ""), session.command("versions", service, "")];
    }
    Ok(answer)
}

type PathAmount = (String, Kind, Units, i64);

/// The highest amount of each path in each bucket of some lives.
async fn highest(
    session: &FleetSession,
    lives: impl Iterator<Item = u64>,
) -> Result<BTreeMap<(u64, i64), Vec<PathAmount>>, FleetError> {
    let lives: Vec<String> = lives.map(|life| life.to_string()).collect();
    let sql = format!(
        "SELECT life, bucket, path, min(kind) AS kind, units, max(highest) AS highest FROM buckets WHERE life IN ({})
        GROUP BY life, bucket, path, units ORDER BY life, bucket, path",
        lives.join(", ")
    );
    let mut sets: BTreeMap<(u64, i64), Vec<PathAmount>> = BTreeMap::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let columns = BatchColumns(&batch);
        let (paths, kinds, units) = (columns.texts("path")?, columns.texts("kind")?, columns.texts("units")?);
        let (ids, times, amounts) = (columns.lives()?, columns.whole("bucket")?, columns.whole("highest")?);
        for row in 0..rows {
            let kind = match kinds.value(row) {
                "heap" => Kind::Heap,
                "nonheap" => Kind::NonHeap,
                _ => Kind::Other,
            };
            let units = match units.value(row) {
                "bytes" => Units::Bytes,
                "count" => Units::Count,
                "count-cumulative" => Units::CountCumulative,
                _ => Units::Percentage,
            };
            let amount = (paths.value(row).to_owned(), kind, units, amounts.value(row));
            sets.entry((ids.value(row), times.value(row))).or_default().push(amount);
        }
    }
    Ok(sets)
}
