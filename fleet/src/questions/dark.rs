//! Dark matter: the share of the heap that no report counts, by service and version.

use super::QuestionOptions;
use super::scope::word;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::error::FleetError;
use crate::session::FleetSession;

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    let condition = options.life_condition();
    let mean = |path: &str| {
        format!(
            "sum(mean * samples) FILTER (WHERE path = '{path}') / sum(samples) FILTER (WHERE path = '{path}')"
        )
    };
    let (dark, heap) = (mean("explicit/heap-unclassified"), mean("heap-allocated"));
    let sql = format!(
        "SELECT service, version, count(DISTINCT life) AS processes, {dark} AS unclassified, {heap} AS allocated
        FROM buckets WHERE {condition} AND path IN ('explicit/heap-unclassified', 'heap-allocated')
        GROUP BY service, version ORDER BY unclassified / allocated DESC NULLS LAST, service, version"
    );
    let (mut services, mut versions, mut processes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut dark, mut heap) = (Vec::new(), Vec::new());
    for batch in session.query(&sql).await? {
        let batch = BatchColumns(&batch);
        services.extend(batch.texts("service")?.iter().flatten().map(str::to_owned));
        versions.extend(batch.texts("version")?.iter().flatten().map(str::to_owned));
        processes.extend(batch.whole("processes")?.values());
        dark.extend(batch.numbers("unclassified")?.iter().map(|amount| amount.unwrap_or(f64::NAN)));
        heap.extend(batch.numbers("allocated")?.iter().map(|amount| amount.unwrap_or(f64::NAN)));
    }
    let shares: Vec<f64> = dark.iter().zip(&heap).map(|(dark, heap)| dark / heap).collect();
    let mut answer = AnswerColumns::default()
        .texts("service", &services)
        .texts("version", &versions)
        .whole("processes", ColumnUnit::Plain, processes)
        .numbers("heap_unclassified", ColumnUnit::Bytes, dark)
        .numbers("heap_allocated", ColumnUnit::Bytes, heap)
        .numbers("share", ColumnUnit::Share, shares)
        .answer("Heap memory that no report counts, mean per process")?;
    if let (Some(service), Some(version)) = (services.first(), versions.first()) {
        let rest = format!(" --path explicit/heap-unclassified --version {}", word(version));
        answer.next = vec![session.command("outliers", service, &rest)];
    }
    Ok(answer)
}
