//! The questions find what `simulate` planted, and nothing else.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memory_fleet::{PlantedKind, Question, SimulationOptions, SimulationTruth, simulate};
use tempfile::TempDir;

use crate::support::{ask, query, set, texts};

/// 100 processes for 25 days, and what was planted.
static TRIAL: LazyLock<(TempDir, SimulationTruth)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let (truth, rows) = simulate(folder.path(), &options()).unwrap();
    assert!(rows > 1_000_000, "{rows}");
    (folder, truth)
});

fn options() -> SimulationOptions {
    let mut options = SimulationOptions::default();
    (options.processes, options.days, options.minutes, options.paths, options.planted) =
        (100, 25, 60, 40, 20);
    options
}

fn planted<const N: usize>(
    kinds: &[PlantedKind],
    key: impl Fn([String; 4]) -> [String; N],
) -> BTreeSet<[String; N]> {
    let causes = TRIAL.1.causes.iter().filter(|cause| kinds.contains(&cause.kind));
    causes
        .map(|cause| key([&cause.service, &cause.path, &cause.version, &cause.host].map(Clone::clone)))
        .collect()
}

#[test]
fn versions_names_each_version_that_made_a_path_grow() {
    let answer = ask(TRIAL.0.path(), &Question::Versions);
    let found = set(&answer, ["service", "path", "version"]);
    let causes = TRIAL
        .1
        .causes
        .iter()
        .filter(|cause| matches!(cause.kind, PlantedKind::Change | PlantedKind::Leak) && !cause.is_old);
    let expected: BTreeSet<_> =
        causes.map(|cause| [&cause.service, &cause.path, &cause.version].map(Clone::clone)).collect();
    assert!(expected.len() > 10, "{expected:?}");
    assert_eq!(found, expected);
    let next = answer.next.join("\n");
    assert!(next.contains("memory-fleet leaks ") && next.contains("memory-fleet outliers "), "{next}");
}

#[test]
fn leaks_names_each_leak_with_its_first_version() {
    let found = set(&ask(TRIAL.0.path(), &Question::Leaks), ["service", "path", "since"]);
    let expected = planted(&[PlantedKind::Leak], |[service, path, version, _]| [service, path, version]);
    assert!(expected.len() > 5, "{expected:?}");
    assert!(expected.iter().any(|[_, path, _]| path == "explicit/heap-unclassified"), "no leak is hidden");
    assert_eq!(found, expected);
}

#[test]
fn changes_finds_each_planted_change_on_the_day_of_its_version() {
    let answer = ask(TRIAL.0.path(), &Question::Changes);
    let found = set(&answer, ["service", "path", "version"]);
    let expected = planted(&[PlantedKind::Change], |[service, path, version, _]| [service, path, version]);
    assert!(expected.is_subset(&found), "{:?}", expected.difference(&found));
    let places: BTreeSet<_> =
        found.iter().map(|[service, path, _]| [service.clone(), path.clone()]).collect();
    let all = [PlantedKind::Change, PlantedKind::Leak, PlantedKind::Growth];
    let causes = planted(&all, |[service, path, _, _]| [service, path]);
    assert!(places.is_subset(&causes), "{:?}", places.difference(&causes));
}

#[test]
fn growth_lists_what_grows_across_restarts() {
    let answer = ask(TRIAL.0.path(), &Question::Growth);
    let rows = texts(&answer.rows, &["service", "path", "share"]);
    let grown: BTreeSet<_> = rows
        .into_iter()
        .filter(|row| row[2].parse::<f64>().unwrap() > 0.25)
        .map(|row| [row[0].clone(), row[1].clone()])
        .collect();
    let expected = planted(&[PlantedKind::Growth], |[service, path, _, _]| [service, path]);
    assert!(!expected.is_empty() && expected.is_subset(&grown), "{expected:?} {grown:?}");
}

#[test]
fn outliers_and_coverage_name_the_hosts() {
    let found = set(&ask(TRIAL.0.path(), &Question::Outliers), ["host", "largest_path"]);
    assert_eq!(found, planted(&[PlantedKind::Outlier], |[_, path, _, host]| [host, path]));
    let found = set(&ask(TRIAL.0.path(), &Question::Coverage), ["host"]);
    assert_eq!(found, planted(&[PlantedKind::Silence], |[_, _, _, host]| [host]));
}

#[test]
fn dark_divides_unclassified_by_allocated() {
    let answer = ask(TRIAL.0.path(), &Question::Dark);
    let expected = query(
        TRIAL.0.path(),
        "SELECT service, version, round(avg(amount) FILTER (WHERE path = 'explicit/heap-unclassified')
            / avg(amount) FILTER (WHERE path = 'heap-allocated') * 1000000) AS share
        FROM reports GROUP BY service, version",
    )
    .unwrap();
    let mut found: Vec<Vec<String>> = texts(&answer.rows, &["service", "version", "share"])
        .into_iter()
        .map(|row| {
            vec![
                row[0].clone(),
                row[1].clone(),
                format!("{:.1}", (row[2].parse::<f64>().unwrap() * 1e6).round()),
            ]
        })
        .collect();
    let mut expected = expected;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn the_same_options_give_the_same_bytes_and_other_seeds_do_not() {
    let mut small = options();
    (small.processes, small.days, small.paths) = (20, 2, 8);
    let write = |seed: u64| {
        let folder = tempfile::tempdir().unwrap();
        let mut options = small.clone();
        options.seed = seed;
        simulate(folder.path(), &options).unwrap();
        let read = |path| std::fs::read(path).unwrap();
        crate::support::files(folder.path()).into_iter().map(read).collect::<Vec<_>>()
    };
    assert_eq!(write(1), write(1));
    assert_ne!(write(1), write(2));
}
