//! Compact files have the same rows and give the same answers, also after a kill between any two steps.

use std::fs;
use std::path::Path;
use std::time::Duration;

use memory_fleet::{CompactOptions, Question, RunFacts, compact, import};

use crate::support::{ask, block_on, files, query, report};

/// 2026-11-22T00:00:00Z.
const DAY: u64 = 1_795_305_600;
const ALL: &str = "SELECT service, path, ts, run_id, amount, count(*) FROM reports GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4";
const BUCKETS: &str =
    "SELECT service, path, bucket, life, sum(samples), sum(mean * samples), max(highest), min(lowest)
    FROM buckets GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";

/// Two services, two processes each, a report each hour for two days.
fn fleet(root: &Path) {
    let source = root.join("source.json");
    for hour in 0..48 {
        for (service, pid) in [("cart", 1), ("cart", 2), ("search", 3), ("search", 4)] {
            let amounts =
                [("explicit/a", 1000 + hour), ("explicit/b", 50 * pid), ("heap-allocated", 100_000)];
            fs::write(&source, report(&format!("{service} (pid {pid})"), &amounts)).unwrap();
            let mut facts = RunFacts::default();
            facts.service = Some(service.to_owned());
            facts.host = Some("h".to_owned());
            facts.time = Some(Duration::from_secs(DAY + hour.cast_unsigned() * 3600));
            import(root, std::slice::from_ref(&source), &facts).unwrap();
        }
    }
    fs::remove_file(source).unwrap();
}

fn run(root: &Path, time: u64) -> (usize, usize, usize) {
    let done = block_on(compact(root, &CompactOptions::at(Duration::from_secs(time)))).unwrap();
    assert!(done.warnings.is_empty(), "{:?}", done.warnings);
    (done.merged, done.written, done.cleaned)
}

fn names(root: &Path) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    files(root).iter().map(name).filter(|name| name.ends_with(".parquet")).collect()
}

#[test]
fn days_and_hours_become_files_with_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fleet(root);
    let (rows, buckets, growth) =
        (query(root, ALL).unwrap(), query(root, BUCKETS).unwrap(), ask(root, &Question::Growth));
    assert_eq!(rows.len(), 48 * 4 * 4);
    // Noon of the second day: the first day, and 12 hours of the second.
    assert_eq!(run(root, DAY + 36 * 3600), (4 * 24 + 4 * 12, 4, 0));
    let first: Vec<String> =
        names(root).into_iter().filter(|name| name.starts_with("reports/date=2026-11-22")).collect();
    assert!(first.len() == 2 && first.iter().all(|name| name.contains("/daily-")), "{first:?}");
    assert_eq!(names(root).iter().filter(|name| name.contains("/hourly-")).count(), 4, "reports and buckets");
    let is_same = || {
        assert_eq!(query(root, ALL).unwrap(), rows);
        assert_eq!(query(root, BUCKETS).unwrap(), buckets);
        assert_eq!(ask(root, &Question::Growth).rows, growth.rows);
    };
    is_same();
    assert_eq!(run(root, DAY + 36 * 3600), (0, 0, 0), "there is nothing to do");
    // Another day: hourly files and the files of the other hours become one.
    assert_eq!(run(root, DAY + 72 * 3600), (2 * (1 + 24), 2, 2));
    assert_eq!(names(root).len(), 2 * 2 * 2, "{:?}", names(root));
    is_same();
    assert_eq!(run(root, DAY + 72 * 3600), (0, 0, 0));
}

#[test]
fn a_kill_between_any_two_steps_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fleet(root);
    let (rows, buckets) = (query(root, ALL).unwrap(), query(root, BUCKETS).unwrap());
    let before: Vec<(String, Vec<u8>)> =
        names(root).into_iter().map(|name| (name.clone(), fs::read(root.join(name)).unwrap())).collect();
    run(root, DAY + 72 * 3600);
    let after: Vec<(String, Vec<u8>)> =
        names(root).into_iter().map(|name| (name.clone(), fs::read(root.join(name)).unwrap())).collect();
    let (reports, sums): (Vec<_>, Vec<_>) =
        after.into_iter().partition(|(name, _)| name.starts_with("reports/"));
    // The steps: files of buckets, files of reports, then the inputs are deleted one after the other.
    let deleted = [0, 1, before.len() / 2, before.len()];
    let states = [(0, 0, 0), (1, 0, 0), (sums.len(), 0, 0), (sums.len(), 1, 0)];
    for (with_sums, with_reports, without) in
        states.into_iter().chain(deleted.map(|without| (sums.len(), reports.len(), without)))
    {
        let killed = tempfile::tempdir().unwrap();
        let parts = before[without..].iter().chain(&sums[..with_sums]).chain(&reports[..with_reports]);
        for (name, contents) in parts {
            let path = killed.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        let state = (with_sums, with_reports, without);
        assert_eq!(query(killed.path(), ALL).unwrap(), rows, "{state:?}");
        assert_eq!(query(killed.path(), BUCKETS).unwrap(), buckets, "{state:?}");
        run(killed.path(), DAY + 72 * 3600);
        assert_eq!(query(killed.path(), ALL).unwrap(), rows, "{state:?}");
        assert_eq!(query(killed.path(), BUCKETS).unwrap(), buckets, "{state:?}");
        assert_eq!(names(killed.path()).len(), 8, "{state:?}: {:?}", names(killed.path()));
    }
}

#[test]
fn a_run_that_comes_back_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fleet(root);
    let rows = query(root, ALL).unwrap();
    run(root, DAY + 72 * 3600);
    // The same files are imported again after they were compacted.
    fleet(root);
    assert_eq!(query(root, ALL).unwrap(), rows);
    let (merged, written, cleaned) = run(root, DAY + 72 * 3600);
    assert_eq!((merged, written, cleaned), (0, 0, 48 * 4));
    assert_eq!(query(root, ALL).unwrap(), rows);
}

#[test]
fn two_compactions_do_not_run_together() {
    let folder = tempfile::tempdir().unwrap();
    fleet(folder.path());
    let lock = fs::File::create(folder.path().join("compact.lock")).unwrap();
    lock.lock().unwrap();
    let options = CompactOptions::at(Duration::from_secs(DAY));
    let error = block_on(compact(folder.path(), &options)).unwrap_err().to_string();
    assert!(error.contains("another process compacts this folder"), "{error}");
    drop(lock);
    run(folder.path(), DAY + 72 * 3600);
}
