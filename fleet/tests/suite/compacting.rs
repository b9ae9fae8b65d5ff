//! Compact files have the same rows and give the same answers, also after a kill between any two steps.

use std::fs;
use std::path::Path;
use std::time::Duration;

use memory_fleet::{CompactOptions, Question, RunFacts, compact, import};

use crate::support::{add_run, ask, block_on, files, query, report, write_again};

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

const COUNTS: &str = "SELECT count(*), count(DISTINCT run_id) FROM reports";

fn add(root: &Path, time: u64) {
    add_run(root, ("cart", "h", "1"), time, &report("cart (pid 1)", &[("explicit/a", 10)]));
}

fn one_file(root: &Path) -> std::path::PathBuf {
    let mut all = files(&root.join("reports"));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn a_run_that_one_of_two_files_shares_counts_once() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for time in [DAY, DAY + 60] {
        add(folder.path(), time);
    }
    for time in [DAY + 60, DAY + 120] {
        add(other.path(), time);
    }
    run(other.path(), DAY + 72 * 3600);
    let both = one_file(other.path());
    let place = files(&folder.path().join("reports"))[0].with_file_name("minute-1.parquet");
    fs::copy(both, place).unwrap();
    run(folder.path(), DAY + 72 * 3600);
    assert_eq!(query(folder.path(), COUNTS).unwrap(), [["3", "3"]]);
}

#[test]
fn a_file_of_an_earlier_version_keeps_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    add(root, DAY);
    write_again(&one_file(root), None);
    run(root, DAY + 72 * 3600);
    assert!(one_file(root).to_string_lossy().contains("/daily-"));
    // The same report again, also in the folder of an earlier version.
    add(root, DAY);
    let new =
        files(&root.join("reports")).into_iter().find(|path| !path.to_string_lossy().contains("daily-"));
    let new = new.unwrap();
    let old = root.join("reports/date=2026-11-22/service=cart");
    fs::create_dir_all(&old).unwrap();
    fs::copy(&new, old.join(new.file_name().unwrap())).unwrap();
    assert_eq!(query(root, COUNTS).unwrap(), [["1", "1"]]);
    run(root, DAY + 72 * 3600);
    assert_eq!(query(root, COUNTS).unwrap(), [["1", "1"]]);
    assert!(one_file(root).to_string_lossy().contains("/daily-"));
}

#[test]
fn the_folders_of_two_versions_with_one_run_count_once() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), DAY);
    let new = one_file(folder.path());
    let old = folder.path().join("reports/date=2026-11-22/service=cart");
    fs::create_dir_all(&old).unwrap();
    fs::copy(&new, old.join(new.file_name().unwrap())).unwrap();
    assert_eq!(query(folder.path(), COUNTS).unwrap(), [["1", "1"]]);
}

#[test]
fn a_column_of_a_later_version_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    add(root, DAY);
    write_again(&one_file(root), Some("new_column"));
    add(root, DAY + 60);
    add(root, DAY + 120);
    let done = block_on(compact(root, &CompactOptions::at(Duration::from_secs(DAY + 72 * 3600)))).unwrap();
    assert!(done.warnings.len() == 1 && done.warnings[0].contains("the column new_column would be lost"));
    assert_eq!((done.merged, files(&root.join("reports")).len()), (2, 2));
    assert_eq!(query(root, COUNTS).unwrap(), [["3", "3"]]);
}

#[test]
fn buckets_of_earlier_versions_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fleet(root);
    run(root, DAY + 72 * 3600);
    let (buckets, written) = (query(root, BUCKETS).unwrap(), names(root));
    fs::rename(root.join("buckets-v2"), root.join("buckets")).unwrap();
    assert_eq!(query(root, BUCKETS).unwrap(), buckets);
    assert_eq!(run(root, DAY + 72 * 3600), (0, 0, 4));
    assert_eq!(names(root), written);
    assert_eq!(query(root, BUCKETS).unwrap(), buckets);
}
