//! Growth: the mean of each path over all processes, on the first and on the last day.

use super::scope::word;
use super::{QuestionOptions, quoted};
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::error::FleetError;
use crate::session::FleetSession;

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    let days = session.reports().iter().map(|file| file.day);
    let (first, last) = (days.clone().min(), days.max());
    let (Some(first), Some(last)) = (first, last) else {
        return Err(FleetError::Usage("there are no days".to_owned()));
    };
    let [first, last] = [first, last].map(|day| day.to_string());
    let on =
        |day: &str| format!("date_trunc('day', bucket) = TIMESTAMP {}", quoted(&format!("{day}T00:00:00Z")));
    let (condition, on_first, on_last) = (options.condition(), on(&first), on(&last));
    let sql = format!(
        "WITH days AS (
            SELECT service, path,
                sum(mean * samples) FILTER (WHERE {on_first}) / sum(samples) FILTER (WHERE {on_first}) AS first,
                sum(mean * samples) FILTER (WHERE {on_last}) / sum(samples) FILTER (WHERE {on_last}) AS last
            FROM buckets WHERE {condition} AND ({on_first} OR {on_last}) GROUP BY service, path
        )
        SELECT service, path, coalesce(first, 0) AS before, coalesce(last, 0) AS after,
            coalesce(last, 0) - coalesce(first, 0) AS growth
        FROM days ORDER BY growth DESC, service, path"
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
    if let (Some(service), Some(path), Some(growth)) = (services.first(), paths.first(), growth.first())
        && *growth > 0.0
    {
        answer.next = ["versions", "leaks"]
            .map(|question| session.command(question, service, &format!(" --path {}", word(path))))
            .into();
    }
    Ok(answer)
}
