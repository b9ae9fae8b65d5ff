//! Outliers: processes whose paths together are farthest above those of their peers, and the path with the largest
//! difference.
//!
//! Peers are the processes of a service in the last bucket that has enough of them: a new bucket fills up, and a host
//! with a wrong clock has later buckets alone. The distance is in units of the median deviation.

use std::collections::BTreeMap;

use super::scope::word;
use super::{QuestionOptions, quoted};
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::error::FleetError;
use crate::session::{FleetSession, QuestionSubject};
use crate::statistics::median;

/// The minimum distance, and the minimum number of peers.
const MIN_DISTANCE: f64 = 5.0;
const MIN_PEERS: usize = 5;
/// A distance is never measured in less than this share of the median, so that equal peers make no outliers.
const MIN_DEVIATION: f64 = 0.02;
/// A median deviation is this part of a standard deviation of normal amounts.
const NORMAL: f64 = 1.4826;
/// The maximum number of processes whose paths are read.
const MAX_READ: usize = 200;

struct PeerProcess {
    service: String,
    host: String,
    process: String,
    pid: i64,
    life: u64,
    version: String,
    amount: f64,
    median: f64,
    distance: f64,
}

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    let condition = options.condition();
    let last = last_buckets(options);
    let sql = format!(
        "WITH last AS ({last}), paths AS (
            SELECT service, host, process, pid, life, path, max(version) AS version,
                sum(mean * samples) / sum(samples) AS amount
            FROM last JOIN buckets ON of_service = service AND last_bucket = bucket
            WHERE {condition} GROUP BY 1, 2, 3, 4, 5, 6
        )
        SELECT service, host, process, pid, life, max(version) AS version, sum(amount) AS amount
        FROM paths GROUP BY 1, 2, 3, 4, 5"
    );
    let mut services: BTreeMap<String, Vec<PeerProcess>> = BTreeMap::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let [service, host, process, version] =
            ["service", "host", "process", "version"].map(|name| batch.texts(name));
        let (service, host, process, version, life) = (service?, host?, process?, version?, batch.lives()?);
        let (pid, amount) = (batch.whole("pid")?, batch.numbers("amount")?);
        for row in 0..rows {
            services.entry(service.value(row).to_owned()).or_default().push(PeerProcess {
                service: service.value(row).to_owned(),
                host: host.value(row).to_owned(),
                process: process.value(row).to_owned(),
                pid: pid.value(row),
                life: life.value(row),
                version: version.value(row).to_owned(),
                amount: amount.value(row),
                median: 0.0,
                distance: 0.0,
            });
        }
    }
    let mut small = Vec::new();
    let mut found = Vec::new();
    for (service, mut peers) in services {
        if peers.len() < MIN_PEERS {
            small.push(service);
            continue;
        }
        let middle = median(peers.iter().map(|peer| peer.amount).collect());
        let deviation = median(peers.iter().map(|peer| (peer.amount - middle).abs()).collect()) * NORMAL;
        let unit = deviation.max(MIN_DEVIATION * middle.abs()).max(1.0);
        for peer in &mut peers {
            (peer.median, peer.distance) = (middle, (peer.amount - middle) / unit);
        }
        found.extend(peers.into_iter().filter(|peer| peer.distance >= MIN_DISTANCE));
    }
    found.sort_by(|one, other| {
        other
            .distance
            .total_cmp(&one.distance)
            .then_with(|| (&one.service, &one.host).cmp(&(&other.service, &other.host)))
    });
    found.truncate(MAX_READ);
    let more = held_more(session, options, &found).await?;
    let held = |peer: &PeerProcess| more.get(&peer.life).cloned().unwrap_or_default();
    let title = match found.len() {
        0 => "No process holds much more than its peers".to_owned(),
        1 => "1 process holds more than its peers".to_owned(),
        count => format!("{count} processes hold more than their peers"),
    };
    let mut answer = AnswerColumns::default()
        .texts("service", found.iter().map(|peer| &peer.service))
        .texts("host", found.iter().map(|peer| &peer.host))
        .texts("process", found.iter().map(|peer| &peer.process))
        .whole("pid", ColumnUnit::Plain, found.iter().map(|peer| peer.pid))
        .texts("version", found.iter().map(|peer| &peer.version))
        .numbers("amount", ColumnUnit::Bytes, found.iter().map(|peer| peer.amount))
        .numbers("median", ColumnUnit::Bytes, found.iter().map(|peer| peer.median))
        .numbers("distance", ColumnUnit::Plain, found.iter().map(|peer| peer.distance))
        .texts("largest_path", found.iter().map(|peer| held(peer).0))
        .numbers("path_more", ColumnUnit::Bytes, found.iter().map(|peer| held(peer).1))
        .answer(title)?;
    if !small.is_empty() {
        answer.notes.push(format!("Fewer than {MIN_PEERS} processes: {}", small.join(", ")));
    }
    if let Some(first) = found.first() {
        let root = word(&session.root().to_string_lossy());
        let sql = format!(
            "SELECT bucket, highest FROM buckets WHERE life = {} AND path = {} ORDER BY bucket",
            first.life,
            quoted(&held(first).0)
        );
        // `query` has no buckets of stacks.
        if session.subject() == QuestionSubject::Reports {
            answer.next.push(format!("memory-fleet query {root} {}", word(&sql)));
        }
        answer.next.extend([
            // Records from now on, until the stacks behind the path are known.
            format!("about-memory attach {}    (on {})", first.pid, first.host),
            format!("about-memory show {}    (on {})", first.pid, first.host),
        ]);
    }
    Ok(answer)
}

/// The last bucket of each service that has at least half as many processes as each bucket of the day before.
fn last_buckets(options: &QuestionOptions) -> String {
    let condition = options.life_condition();
    format!(
        "SELECT of_service, max(bucket) AS last_bucket FROM (
            SELECT of_service, bucket, lives,
                max(lives) OVER (PARTITION BY of_service ORDER BY bucket ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS most
            FROM (
                SELECT of_service, bucket, count(*) AS lives
                FROM (SELECT service AS of_service, bucket, life FROM buckets WHERE {condition} GROUP BY 1, 2, 3)
                GROUP BY 1, 2
            )
        ) WHERE 2 * lives >= most GROUP BY of_service"
    )
}

/// For each life, the path with the largest difference from the median of all peers, and the difference.
async fn held_more(
    session: &FleetSession,
    options: &QuestionOptions,
    found: &[PeerProcess],
) -> Result<BTreeMap<u64, (String, f64)>, FleetError> {
    let mut largest: BTreeMap<u64, (String, f64)> = BTreeMap::new();
    if found.is_empty() {
        return Ok(largest);
    }
    let lives: Vec<String> = found.iter().map(|peer| peer.life.to_string()).collect();
    let (condition, last, lives) = (options.condition(), last_buckets(options), lives.join(", "));
    let sql = format!(
        "WITH last AS ({last}), paths AS (
            SELECT service, life, path, sum(mean * samples) / sum(samples) AS amount
            FROM last JOIN buckets ON of_service = service AND last_bucket = bucket
            WHERE {condition} GROUP BY 1, 2, 3
        ), usual AS (SELECT service, path, median(amount) AS usual FROM paths GROUP BY 1, 2)
        SELECT life, paths.path, amount - usual AS more
        FROM usual JOIN paths ON usual.service = paths.service AND usual.path = paths.path
        WHERE life IN ({lives}) ORDER BY more DESC, path"
    );
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (lives, paths, more) = (batch.lives()?, batch.texts("path")?, batch.numbers("more")?);
        for row in 0..rows {
            largest.entry(lives.value(row)).or_insert_with(|| (paths.value(row).to_owned(), more.value(row)));
        }
    }
    Ok(largest)
}
