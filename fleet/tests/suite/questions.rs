//! Questions about small tables whose answers are known.

use std::fs;
use std::path::Path;
use std::time::Duration;

use memory_fleet::{Answer, CompactOptions, Question, QuestionOptions, compact};

use crate::support::{add_run, all_rows, ask, block_on, open, query, report, texts};

/// 2026-11-22T00:00:00Z.
const DAY: u64 = 1_795_305_600;
const HOUR: u64 = 3600;

fn add(root: &Path, service: &str, host: &str, time: u64, amounts: &[(&str, i64)]) {
    add_run(root, (service, host, "1"), time, &report(&format!("{service} (pid 7)"), amounts));
}

fn compacted(root: &Path) {
    block_on(compact(root, &CompactOptions::at(Duration::from_secs(DAY + 400 * HOUR)))).unwrap();
}

fn budget(root: &Path, limits: &str) -> Answer {
    let file = root.join("budget.toml");
    fs::write(&file, format!("[budget]\n{limits}\n")).unwrap();
    ask(root, &Question::Budget(file))
}

#[test]
fn reports_of_one_path_in_a_run_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for hour in 0..12_u64 {
        add(root, "cart", "h", DAY + hour * HOUR, &[("explicit/a", 600), ("explicit/a", 500 + hour as i64)]);
    }
    // This process reports as often, and its last report is two intervals old.
    for hour in 0..14 {
        add(root, "cart", "other", DAY + hour * HOUR, &[("explicit/a", 7)]);
    }
    let check = || {
        assert_eq!(
            query(
                root,
                "SELECT mean, samples, lowest, highest FROM buckets WHERE host = 'h' ORDER BY bucket"
            )
            .unwrap(),
            [["1102.5", "6", "1100", "1105"], ["1108.5", "6", "1106", "1111"]]
        );
        assert_eq!(texts(&ask(root, &Question::Coverage).rows, &["host"]), [[""; 1]; 0]);
        let answer = budget(root, "\"explicit/a\" = \"1 KiB\"");
        assert_eq!(texts(&answer.rows, &["processes", "host"]), [["1", "h"]]);
        let text = &texts(&answer.rows, &["largest_outcome"])[0][0];
        assert!(text.contains("1.08 KiB"), "{text}");
    };
    check();
    compacted(root);
    check();
}

#[test]
fn growth_has_the_days_of_each_service_and_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (service, days) in [("cart", 0..9), ("early", 0..4), ("late", 5..9)] {
        for day in days {
            for host in 0..4 {
                let mut amounts = vec![("explicit/a", 1000 + day * 10)];
                // One of four processes has this path.
                if host == 0 {
                    amounts.push(("explicit/rare", 400 * (day + 1)));
                }
                let time = DAY + (day as u64) * 24 * HOUR;
                add(root, service, &format!("h{host}"), time, &amounts);
            }
        }
    }
    let answer = ask(root, &Question::Growth);
    let mut rows = texts(&answer.rows, &["service", "path", "before", "after"]);
    rows.sort();
    assert_eq!(
        rows,
        [
            ["cart", "explicit/a", "1000.0", "1080.0"],
            ["cart", "explicit/rare", "100.0", "900.0"],
            ["early", "explicit/a", "1000.0", "1030.0"],
            ["early", "explicit/rare", "100.0", "400.0"],
            ["late", "explicit/a", "1050.0", "1080.0"],
            ["late", "explicit/rare", "600.0", "900.0"],
        ]
    );
    assert_eq!(
        answer.notes,
        ["Reports of early: 2026-11-22 to 2026-11-25", "Reports of late: 2026-11-27 to 2026-11-30"]
    );
    let mut options = all_rows();
    options.service = Some("early".to_owned());
    let answer = block_on(open(root).ask(&Question::Growth, &options)).unwrap();
    assert!(answer.title.ends_with("2026-11-22 to 2026-11-25") && answer.notes.is_empty(), "{answer:?}");
}

#[test]
fn a_budget_does_not_add_amounts_of_different_days() {
    let folder = tempfile::tempdir().unwrap();
    for (day, a, b) in [(0, 900, 50), (1, 50, 900)] {
        let amounts = [("explicit/a", a), ("explicit/b", b)];
        add(folder.path(), "cart", "h", DAY + day * 24 * HOUR, &amounts);
    }
    let answer = budget(folder.path(), "\"explicit\" = \"1 KiB\"");
    assert_eq!((answer.rows.num_rows(), &answer.title[..15]), (0, "All 1 processes"));
    assert_eq!(budget(folder.path(), "\"explicit\" = \"0.9 KiB\"").rows.num_rows(), 1);
}

#[test]
fn a_clock_ahead_and_a_new_bucket_hide_no_outlier() {
    for ahead in [6, 24 * 30] {
        let folder = tempfile::tempdir().unwrap();
        for hour in (0..24).step_by(2) {
            for host in 0..10 {
                let amount = if host == 3 { 90_000 } else { 1000 + host };
                let shift = if host == 9 { ahead * HOUR } else { 0 };
                let time = DAY + hour * HOUR + shift;
                add(folder.path(), "cart", &format!("h{host}"), time, &[("explicit/a", amount)]);
            }
        }
        let mut options = all_rows();
        options.service = Some("cart".to_owned());
        let answer = block_on(open(folder.path()).ask(&Question::Outliers, &options)).unwrap();
        assert_eq!(texts(&answer.rows, &["host"]), [["h3"]], "{ahead}: {answer:?}");
    }
}

#[test]
fn coverage_knows_replaced_hosts_and_single_reports() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    // Three deployments of four pods, each pod with a host of its own. Pod 1-2 stops before the second deployment.
    for deployment in 0..3 {
        for pod in 0..4 {
            let hours = if (deployment, pod) == (1, 2) { 0..5 } else { 0..10 };
            for hour in hours {
                let time = DAY + (deployment * 10 + hour) * HOUR;
                let (host, version) = (format!("pod-{deployment}-{pod}"), format!("{deployment}"));
                let body = report("cart (pid 1)", &[("explicit/a", 10)]);
                add_run(root, ("cart", &host, &version), time, &body);
            }
        }
    }
    // One report of a job, half an hour before the last reports.
    add(root, "cart", "job", DAY + 29 * HOUR - 1800, &[("explicit/a", 10)]);
    let answer = ask(root, &Question::Coverage);
    assert_eq!(texts(&answer.rows, &["host", "last_seen"]), [["pod-1-2", "2026-11-22T14:00:00Z"]]);
    assert!(answer.notes.iter().any(|note| note.starts_with("7 processes ended")), "{answer:?}");
    for (version, count) in [("0", 0), ("1", 1), ("2", 0)] {
        let mut options = QuestionOptions::default();
        options.version = Some(version.to_owned());
        let answer = block_on(open(root).ask(&Question::Coverage, &options)).unwrap();
        assert_eq!(answer.rows.num_rows(), count, "{version}");
    }
}

#[test]
fn leaks_counts_processes_that_it_cannot_judge() {
    let folder = tempfile::tempdir().unwrap();
    // The same host and pid for two versions, as in a container.
    for hour in (0..144).step_by(6) {
        let version = if hour < 72 { "1" } else { "2" };
        let body = report("cart (pid 1)", &[("explicit/a", 1000 + hour as i64)]);
        add_run(folder.path(), ("cart", "h", version), DAY + hour * HOUR, &body);
    }
    let answer = ask(folder.path(), &Question::Leaks);
    assert!(answer.notes.iter().any(|note| note.starts_with("1 of 1 longer processes")), "{answer:?}");
}
