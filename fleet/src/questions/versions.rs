//! Versions: which version made a path grow.
//!
//! Processes of two successive versions are compared at the same age, so that a path that fills up after a start, or
//! that leaks in both versions, is equal. A path that grows all the time grows at each version: the median of all its
//! steps is subtracted. A step counts if it is far above the differences between processes of one version.

use std::collections::BTreeMap;

use super::QuestionOptions;
use super::coverage::time;
use super::scope::word;
use crate::answer::{Answer, AnswerColumns, ColumnUnit};
use crate::batch_columns::BatchColumns;
use crate::buckets::is_id;
use crate::error::FleetError;
use crate::session::{FleetSession, QuestionSubject};
use crate::statistics::median;

/// The minimum number of processes of each version.
const MIN_PROCESSES: f64 = 3.0;
/// The minimum size of a step, in standard errors, as a share of the amount before, and in bytes.
const MIN_ERRORS: f64 = 6.0;
const MIN_SHARE: f64 = 0.05;
const MIN_BYTES: f64 = 65_536.0;

/// The error of a median is larger than the error of a mean by this factor.
const MEDIAN_ERROR: f64 = 1.2533;

/// The amounts of processes of one age, in days. The median and the middle two thirds stand for all, so that a process
/// that holds far more than its peers hides no version.
#[derive(Clone, Copy, Debug, Default)]
struct AgeGroup {
    processes: f64,
    mean: f64,
    variance: f64,
}

type AgeGroups = BTreeMap<i64, AgeGroup>;

struct VersionStep {
    service: String,
    path: String,
    version: String,
    previous: String,
    deployed: i64,
    before: f64,
    growth: f64,
    errors: f64,
}

pub(super) async fn ask(session: &FleetSession, options: &QuestionOptions) -> Result<Answer, FleetError> {
    // A version is compared with the version before it, so all versions are read.
    let all = QuestionOptions { version: None, ..options.clone() };
    let versions = deployments(session, &all).await?;
    let condition = all.condition();
    let sql = format!(
        "WITH lives AS (SELECT life AS id, min(first_ts) AS start FROM buckets GROUP BY life),
        ages AS (
            SELECT service, path, version, life,
                (CAST(bucket AS BIGINT) - CAST(start AS BIGINT) + 21600000000) / 86400000000 AS age,
                sum(mean * samples) / sum(samples) AS amount
            FROM lives JOIN buckets ON id = life WHERE {condition} GROUP BY 1, 2, 3, 4, 5
        )
        SELECT service, path, version, age, count(*) AS processes, median(amount) AS middle,
            power({MEDIAN_ERROR} * (percentile_cont(0.84) WITHIN GROUP (ORDER BY amount)
                - percentile_cont(0.16) WITHIN GROUP (ORDER BY amount)) / 2, 2) AS variance
        FROM ages GROUP BY 1, 2, 3, 4"
    );
    let mut groups: BTreeMap<(String, String), BTreeMap<String, AgeGroups>> = BTreeMap::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (services, paths, versions) =
            (batch.texts("service")?, batch.texts("path")?, batch.texts("version")?);
        let (ages, processes) = (batch.whole("age")?, batch.numbers("processes")?);
        let (means, variances) = (batch.numbers("middle")?, batch.numbers("variance")?);
        for row in 0..rows {
            let key = (services.value(row).to_owned(), paths.value(row).to_owned());
            let group = AgeGroup {
                processes: processes.value(row),
                mean: means.value(row),
                variance: variances.value(row),
            };
            let ages_of_version =
                groups.entry(key).or_default().entry(versions.value(row).to_owned()).or_default();
            ages_of_version.insert(ages.value(row), group);
        }
    }
    // An id that differs between builds would be new in each version.
    let all = groups.len();
    groups.retain(|(_, path), _| session.subject() != QuestionSubject::Stacks || !is_id(path));
    let omitted = all - groups.len();
    let mut steps: Vec<VersionStep> = Vec::new();
    for ((service, path), by_version) in &groups {
        let order = versions.get(service).map(Vec::as_slice).unwrap_or_default();
        steps.extend(path_steps(service, path, order, by_version));
    }
    steps.retain(|step| options.version.as_ref().is_none_or(|version| *version == step.version));
    steps.sort_by(|one, other| {
        other
            .growth
            .total_cmp(&one.growth)
            .then_with(|| (&one.service, &one.path).cmp(&(&other.service, &other.path)))
    });
    let title = match steps.len() {
        0 => "No version made a path grow".to_owned(),
        1 => "1 path grew with a version".to_owned(),
        count => format!("{count} paths grew with a version"),
    };
    let mut answer = AnswerColumns::default()
        .texts("service", steps.iter().map(|step| &step.service))
        .texts("path", steps.iter().map(|step| &step.path))
        .texts("version", steps.iter().map(|step| &step.version))
        .texts("previous", steps.iter().map(|step| &step.previous))
        .texts("deployed", steps.iter().map(|step| time(step.deployed)))
        .numbers("before", ColumnUnit::Bytes, steps.iter().map(|step| step.before))
        .numbers("growth", ColumnUnit::Bytes, steps.iter().map(|step| step.growth))
        .numbers("errors", ColumnUnit::Plain, steps.iter().map(|step| step.errors))
        .answer(title)?;
    answer.notes.push(format!(
        "Growth per process at the same age, at least {MIN_ERRORS} standard errors (column errors) and {:.0}%.",
        MIN_SHARE * 100.0
    ));
    if omitted > 0 {
        answer.notes.push(format!(
            "{omitted} stacks without function names are left out: their ids differ between builds."
        ));
    }
    if let Some(first) = steps.first() {
        let path = word(&first.path);
        answer.next = vec![
            session.command("leaks", &first.service, &format!(" --path {path}")),
            session.command(
                "outliers",
                &first.service,
                &format!(" --path {path} --version {}", word(&first.version)),
            ),
        ];
    }
    Ok(answer)
}

/// The versions of each service, in the order of their first reports in microseconds.
pub(crate) async fn deployments(
    session: &FleetSession,
    options: &QuestionOptions,
) -> Result<BTreeMap<String, Vec<(i64, String)>>, FleetError> {
    let sql = format!(
        "SELECT service, version, CAST(min(first_ts) AS BIGINT) AS deployed FROM buckets
        WHERE {} GROUP BY service, version",
        options.life_condition()
    );
    let mut versions: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let (services, names, deployed) =
            (batch.texts("service")?, batch.texts("version")?, batch.whole("deployed")?);
        for row in 0..rows {
            let versions = versions.entry(services.value(row).to_owned()).or_default();
            versions.push((deployed.value(row), names.value(row).to_owned()));
        }
    }
    versions.values_mut().for_each(|versions| versions.sort());
    Ok(versions)
}

fn path_steps(
    service: &str,
    path: &str,
    order: &[(i64, String)],
    by_version: &BTreeMap<String, AgeGroups>,
) -> Vec<VersionStep> {
    let empty = AgeGroups::new();
    let mut steps: Vec<VersionStep> = Vec::new();
    for pair in order.windows(2) {
        let [(_, previous), (deployed, version)] = pair else { continue };
        let Some(new) = by_version.get(version) else { continue };
        let old = by_version.get(previous).unwrap_or(&empty);
        let Some((before, growth, error)) = step(old, new) else { continue };
        steps.push(VersionStep {
            service: service.to_owned(),
            path: path.to_owned(),
            version: version.clone(),
            previous: previous.clone(),
            deployed: *deployed,
            before,
            growth,
            errors: growth / error.max(1.0),
        });
    }
    let usual = match steps.len() {
        0..3 => 0.0,
        _ => median(steps.iter().map(|step| step.growth).collect()).max(0.0),
    };
    for step in &mut steps {
        let share = if step.growth > 0.0 { (step.growth - usual) / step.growth } else { 0.0 };
        step.errors *= share;
        step.growth -= usual;
    }
    steps.retain(|step| {
        step.errors >= MIN_ERRORS && step.growth >= MIN_BYTES && step.growth >= MIN_SHARE * step.before
    });
    steps
}

/// The amount before, the growth and its standard error, over the ages that both versions have.
fn step(old: &AgeGroups, new: &AgeGroups) -> Option<(f64, f64, f64)> {
    if old.is_empty() {
        // The path is new: the version before did not report it.
        let [mut processes, mut sum, mut variance] = [0.0_f64, 0.0, 0.0];
        for group in new.values() {
            processes = processes.max(group.processes);
            sum += group.mean * group.processes;
            variance += group.variance;
        }
        let weight: f64 = new.values().map(|group| group.processes).sum();
        let error = (variance / new.len() as f64 / processes).sqrt();
        return (processes >= MIN_PROCESSES).then(|| (0.0, sum / weight, error));
    }
    let [mut weight, mut before, mut growth, mut error, mut most] = [0.0_f64; 5];
    for (age, new) in new {
        let Some(old) = old.get(age) else { continue };
        let processes = old.processes.min(new.processes);
        if processes < MIN_PROCESSES {
            continue;
        }
        most = most.max(processes);
        weight += processes;
        before += processes * old.mean;
        growth += processes * (new.mean - old.mean);
        // The amounts of a process at different ages depend on each other, so more ages do not lessen the error.
        error += processes * (old.variance / old.processes + new.variance / new.processes).sqrt();
    }
    (most >= MIN_PROCESSES).then(|| (before / weight, growth / weight, error / weight))
}
