//! Changes: the days on which the mean of a path changed its level, and the version that was deployed at that time.

use std::collections::BTreeMap;

use super::QuestionOptions;
use super::scope::word;
use super::versions::deployments;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::day::{DAY_SECONDS, Day};
use crate::error::FleetError;
use crate::session::FleetSession;
use crate::statistics::change_points;

/// The maximum probability of a change by chance, and the minimum size of a change.
const MAX_P: f64 = 0.001;
const MIN_SHARE: f64 = 0.05;
const MIN_BYTES: f64 = 65_536.0;

struct LevelChange {
    service: String,
    path: String,
    day: Day,
    before: f64,
    after: f64,
    version: String,
}

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    let versions = deployments(session, options).await?;
    let sql = format!(
        "SELECT service, path, CAST(bucket AS BIGINT) / 86400000000 AS day, sum(mean * samples) / sum(samples) AS amount
        FROM buckets WHERE {} GROUP BY 1, 2, 3",
        options.condition()
    );
    let mut series: BTreeMap<(String, String), Vec<(i64, f64)>> = BTreeMap::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (services, paths) = (batch.texts("service")?, batch.texts("path")?);
        let (days, amounts) = (batch.whole("day")?, batch.numbers("amount")?);
        for row in 0..rows {
            let key = (services.value(row).to_owned(), paths.value(row).to_owned());
            series.entry(key).or_default().push((days.value(row), amounts.value(row)));
        }
    }
    let mut changes = Vec::new();
    for ((service, path), mut points) in series {
        points.sort_by_key(|(day, _)| *day);
        let amounts: Vec<f64> = points.iter().map(|(_, amount)| *amount).collect();
        for change in change_points(&amounts, MAX_P) {
            let size = (change.after - change.before).abs();
            if size < MIN_BYTES || size < MIN_SHARE * change.before.abs() {
                continue;
            }
            let day = Day(i32::try_from(points[change.index].0).unwrap_or(i32::MAX));
            let version = deployed_near(versions.get(&service).map(Vec::as_slice).unwrap_or_default(), day);
            let (before, after) = (change.before, change.after);
            changes.push(LevelChange {
                service: service.clone(),
                path: path.clone(),
                day,
                before,
                after,
                version,
            });
        }
    }
    let size = |change: &LevelChange| (change.after - change.before).abs();
    changes.sort_by(|one, other| {
        let place = |change: &LevelChange| (change.service.clone(), change.path.clone(), change.day);
        size(other).total_cmp(&size(one)).then_with(|| place(one).cmp(&place(other)))
    });
    let title = match changes.len() {
        0 => "No path changed its level".to_owned(),
        1 => "1 change of a path's level".to_owned(),
        count => format!("{count} changes of paths' levels"),
    };
    let mut answer = AnswerColumns::default()
        .texts("service", changes.iter().map(|change| &change.service))
        .texts("path", changes.iter().map(|change| &change.path))
        .texts("day", changes.iter().map(|change| change.day.to_string()))
        .numbers("before", ColumnUnit::Bytes, changes.iter().map(|change| change.before))
        .numbers("after", ColumnUnit::Bytes, changes.iter().map(|change| change.after))
        .numbers("change", ColumnUnit::Bytes, changes.iter().map(|change| change.after - change.before))
        .texts("version", changes.iter().map(|change| &change.version))
        .answer(title)?;
    answer.notes.push(
        "The mean per process and day; version: deployed on that day or the day before. Restarts also change levels: \
         see leaks."
            .to_owned(),
    );
    if let Some(first) = changes.first() {
        let rest = format!(" --path {}", word(&first.path));
        answer.next =
            ["versions", "leaks"].map(|question| session.command(question, &first.service, &rest)).into();
    }
    Ok(answer)
}

/// The last version whose deployment was on this day or on the day before; empty if no deployment was then. The first
/// version in the tables does not count, since its deployment was before them.
fn deployed_near(versions: &[(i64, String)], day: Day) -> String {
    let start = day.start().as_secs().cast_signed();
    let length = DAY_SECONDS.cast_signed();
    let near = versions.iter().skip(1).rev().find(|(deployed, _)| {
        let second = deployed / 1_000_000;
        (start - length..start + length).contains(&second)
    });
    near.map(|(_, version)| version.clone()).unwrap_or_default()
}
