//! Leaks: paths that grow in a process until it restarts.
//!
//! The life of a process has four quarters. A life rises if the path grows in at least three of them. A version leaks if
//! a path rises in at least 20 % of its lives, in more lives than chance explains, and a restart undoes the growth.

use std::collections::{BTreeMap, BTreeSet};

use super::QuestionOptions;
use super::scope::word;
use super::versions::deployments;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::{BatchColumns, known};
use crate::error::FleetError;
use crate::session::FleetSession;

/// The minimum share of a version's lives that rise.
const MIN_LIVES: f64 = 0.2;
/// A quarter grows if it has at least this share of the whole growth.
const MIN_QUARTER: f64 = 0.1;
/// The minimum growth in a life: as a share of the path's amount, and in bytes.
const MIN_SHARE: f64 = 0.02;
const MIN_BYTES: f64 = 16_384.0;
/// The lives that rise must exceed those that fall by this many standard deviations.
const MIN_DEVIATIONS: f64 = 4.0;
/// The maximum share of the growth that is still there after a restart.
const MAX_KEPT: f64 = 0.5;
/// The minimum length of a life: a level at its start and another at its end need two days.
const MIN_MICROS: u64 = 8 * crate::buckets::BUCKET_SECONDS * 1_000_000;

/// The lives of a version with one path.
#[derive(Clone, Copy, Debug, Default)]
struct PathLives {
    count: f64,
    rising: f64,
    falling: f64,
    /// The sums over all lives: the amounts at the start and the end, and the length in hours.
    starts: f64,
    ends: f64,
    hours: f64,
    /// Lives whose process did not start with the tables, and the sum of their amounts at the start.
    later: f64,
    later_starts: f64,
    early: f64,
    early_starts: f64,
}

struct PathLeak {
    service: String,
    path: String,
    since: String,
    lives: f64,
    share: f64,
    daily: f64,
    at_end: f64,
    restarts: &'static str,
}

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    let versions = deployments(session, &QuestionOptions { version: None, ..options.clone() }).await?;
    let (condition, lives) = (options.condition(), lives_query(options));
    // The levels at the start, the end, and the borders between quarters. Each is the mean of a whole day, so that a
    // daily rhythm does not matter.
    let day = 86_400_000_000_u64;
    let levels: Vec<String> = (0..=4)
        .map(|border| {
            let zone = match border {
                0 => format!("age < {day}"),
                4 => format!("age > length - {day}"),
                _ => format!("abs(age - {border} * length / 4) < {day} / 2"),
            };
            let sum = |of: &str| format!("sum({of}) FILTER (WHERE {zone})");
            format!("{} / {} AS level_{border}", sum("mean * samples"), sum("samples"))
        })
        .collect();
    let sql = format!(
        "WITH lives AS ({lives}), aged AS (
            SELECT service, path, version, life, start, length, mean, samples,
                (CAST(first_ts AS BIGINT) + CAST(last_ts AS BIGINT)) / 2 - start AS age
            FROM lives JOIN buckets ON id = life WHERE length >= {MIN_MICROS} AND {condition}
        )
        SELECT service, path, version, life, min(start) AS start, min(length) AS length, {}
        FROM aged GROUP BY service, path, version, life",
        levels.join(", ")
    );
    let mut paths: BTreeMap<(String, String), BTreeMap<String, PathLives>> = BTreeMap::new();
    let (mut all_lives, mut whole_lives) = (BTreeSet::new(), BTreeSet::new());
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (services, names, of) = (batch.texts("service")?, batch.texts("path")?, batch.texts("version")?);
        let ids = batch.lives()?;
        let (starts, lengths) = (batch.whole("start")?, batch.numbers("length")?);
        let levels =
            (0..=4).map(|border| batch.numbers(&format!("level_{border}"))).collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows {
            let levels: Option<Vec<f64>> = levels.iter().map(|level| known(level, row)).collect();
            all_lives.insert(ids.value(row));
            let Some(levels) = levels else { continue };
            whole_lives.insert(ids.value(row));
            let service = services.value(row);
            let first =
                versions.get(service).and_then(|versions| versions.first()).map_or(0, |(time, _)| *time);
            let is_early = starts.value(row) < first + 3_600_000_000;
            let key = (service.to_owned(), names.value(row).to_owned());
            let lives = paths.entry(key).or_default().entry(of.value(row).to_owned()).or_default();
            lives.add(&levels, lengths.value(row) / 3.6e9, is_early);
        }
    }
    let mut leaks = Vec::new();
    for ((service, path), by_version) in &paths {
        let order = versions.get(service).map(Vec::as_slice).unwrap_or_default();
        leaks.extend(leak(service, path, order, by_version));
    }
    leaks.sort_by(|one: &PathLeak, other: &PathLeak| {
        other
            .daily
            .total_cmp(&one.daily)
            .then_with(|| (&one.service, &one.path).cmp(&(&other.service, &other.path)))
    });
    let title = match leaks.len() {
        0 => "No path leaks".to_owned(),
        1 => "1 path grows until the process restarts".to_owned(),
        count => format!("{count} paths grow until the process restarts"),
    };
    let mut answer = AnswerColumns::default()
        .texts("service", leaks.iter().map(|leak| &leak.service))
        .texts("path", leaks.iter().map(|leak| &leak.path))
        .texts("since", leaks.iter().map(|leak| &leak.since))
        .numbers("per_day", ColumnUnit::Bytes, leaks.iter().map(|leak| leak.daily))
        .numbers("at_end", ColumnUnit::Bytes, leaks.iter().map(|leak| leak.at_end))
        .numbers("rising", ColumnUnit::Share, leaks.iter().map(|leak| leak.share))
        .whole("processes", ColumnUnit::Plain, leaks.iter().map(|leak| leak.lives as i64))
        .texts("restart", leaks.iter().map(|leak| leak.restarts))
        .answer(title)?;
    let hours = MIN_MICROS / 3_600_000_000;
    answer.notes.push(format!(
        "Processes that ran less than {hours} hours do not count. since: the first version that leaks."
    ));
    let skipped = all_lives.len() - whole_lives.len();
    if skipped > 0 {
        answer.notes.push(format!(
            "{skipped} of {} longer processes do not count either: their reports have gaps, or two versions. In \
             containers, give each start its own host name.",
            all_lives.len()
        ));
    }
    if let Some(first) = leaks.first() {
        let rest = format!(" --path {} --version {}", word(&first.path), word(&first.since));
        answer.next = vec![session.command("outliers", &first.service, &rest)];
    }
    Ok(answer)
}

/// The start and the length of each life, in microseconds.
fn lives_query(options: &QuestionOptions) -> String {
    format!(
        "SELECT life AS id, CAST(min(first_ts) AS BIGINT) AS start,
            CAST(max(last_ts) AS BIGINT) - CAST(min(first_ts) AS BIGINT) AS length
        FROM buckets WHERE {} GROUP BY life",
        options.life_condition()
    )
}

impl PathLives {
    fn add(&mut self, levels: &[f64], hours: f64, is_early: bool) {
        let (start, end) = (levels[0], levels[levels.len() - 1]);
        let growth = end - start;
        let quarters = |sign: f64| {
            let grows = |pair: &&[f64]| sign * (pair[1] - pair[0]) >= MIN_QUARTER * growth.abs();
            levels.windows(2).filter(grows).count()
        };
        let is_large = growth.abs() >= MIN_BYTES && growth.abs() >= MIN_SHARE * start.abs();
        self.count += 1.0;
        self.starts += start;
        self.ends += end;
        // The levels are means of days, whose middles are a day less apart.
        self.hours += hours - 24.0;
        if is_large && growth > 0.0 && quarters(1.0) >= 3 {
            self.rising += 1.0;
        }
        if is_large && growth < 0.0 && quarters(-1.0) >= 3 {
            self.falling += 1.0;
        }
        if is_early {
            self.early += 1.0;
            self.early_starts += start;
        } else {
            self.later += 1.0;
            self.later_starts += start;
        }
    }

    fn rises(&self) -> bool {
        let excess = self.rising - self.falling;
        self.rising >= MIN_LIVES * self.count && excess > MIN_DEVIATIONS * (self.rising + self.falling).sqrt()
    }
}

/// The leak of a path, from the first version that leaks on.
fn leak(
    service: &str,
    path: &str,
    order: &[(i64, String)],
    by_version: &BTreeMap<String, PathLives>,
) -> Option<PathLeak> {
    let lives = |version: &String| by_version.get(version).copied().unwrap_or_default();
    let leaking: Vec<&String> =
        order.iter().map(|(_, version)| version).filter(|version| lives(version).rises()).collect();
    let since = *leaking.first()?;
    let mut sum = PathLives::default();
    for version in &leaking {
        let lives = lives(version);
        sum.count += lives.count;
        sum.rising += lives.rising;
        sum.starts += lives.starts;
        sum.ends += lives.ends;
        sum.hours += lives.hours;
    }
    let growth = (sum.ends - sum.starts) / sum.count;
    // The start of the first processes, and of those that started later: growth that a restart keeps is not a leak.
    let all = by_version.values();
    let (early, early_starts) =
        all.clone().fold((0.0, 0.0), |(count, sum), lives| (count + lives.early, sum + lives.early_starts));
    let (later, later_starts) =
        all.fold((0.0, 0.0), |(count, sum), lives| (count + lives.later, sum + lives.later_starts));
    let restarts = match (early > 0.0, later > 0.0) {
        (true, true) if later_starts / later - early_starts / early > MAX_KEPT * growth => return None,
        (_, true) => "frees it",
        _ => "not seen",
    };
    Some(PathLeak {
        service: service.to_owned(),
        path: path.to_owned(),
        since: since.clone(),
        lives: sum.count,
        share: sum.rising / sum.count,
        daily: growth / (sum.hours / sum.count) * 24.0,
        at_end: sum.ends / sum.count,
        restarts,
    })
}
