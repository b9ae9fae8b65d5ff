//! `OpenMetrics` and the text of Prometheus, checked by the rules of their specifications.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use memory_export::open_metrics::{MetricsForm, OpenMetricsOptions, write};
use memory_report::{Kind, Report, ReportSet, ReporterRun, Units};

use crate::inputs::HOSTILE;

fn report<'a>(process: &'a str, path: &'a str, kind: Kind, units: Units, amount: i64) -> Report<'a> {
    Report { process, path, kind, units, amount, description: "A part." }
}

fn set(reports: &[(&str, Kind, Units, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    for (path, kind, units, amount) in reports {
        set.push(report("Main Process (pid 1)", path, *kind, *units, *amount));
    }
    set
}

fn heap(path: &str, amount: i64) -> (&str, Kind, Units, i64) {
    (path, Kind::Heap, Units::Bytes, amount)
}

/// A sample: its name, its labels, and its value.
type ProfileSample = (String, BTreeMap<String, String>, String);

/// Reads a text, and checks the rules of strict readers.
fn read(set: &ReportSet, options: &OpenMetricsOptions) -> Vec<ProfileSample> {
    let mut file = Vec::new();
    write(set, options, &mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let is_open = *options == options.clone().form(MetricsForm::OpenMetrics);
    assert!(!text.contains("\n\n") && !text.starts_with('\n'), "a blank line");
    assert_eq!(text.ends_with("\n# EOF\n"), is_open, "the end");
    let mut samples = Vec::new();
    let (mut families, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let (mut family, mut kind) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            match words[0] {
                "TYPE" => {
                    (family, kind) = (words[1].to_owned(), words[2].to_owned());
                    assert!(families.insert(family.clone()), "{family} is interleaved");
                }
                "UNIT" => {
                    assert!(is_open && words[1] == family && family.ends_with(&format!("_{}", words[2])));
                }
                "HELP" => assert_eq!(words[1], family),
                "EOF" => {}
                word => panic!("{word}"),
            }
            continue;
        }
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let expected = match (&*kind, is_open) {
            ("counter", true) => format!("{family}_total"),
            _ => family.clone(),
        };
        assert_eq!(name, expected);
        let (labels, value) = rest.rsplit_once(' ').unwrap();
        let labels = labels_of(labels);
        assert!(seen.insert((name.to_owned(), labels.clone())), "duplicate sample: {line}");
        assert!(kind != "counter" || !value.starts_with('-'), "{line}");
        value.parse::<f64>().unwrap();
        samples.push((name.to_owned(), labels, value.to_owned()));
    }
    samples
}

fn labels_of(text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
        assert_eq!(text, "");
        return labels;
    };
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("unexpected escape of {c}"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert_eq!(labels.insert(name.to_owned(), value), None);
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    labels
}

/// The amounts of bytes by path.
fn by_path(samples: &[ProfileSample]) -> BTreeMap<&str, i128> {
    let bytes = samples.iter().filter(|(name, ..)| name == "memory_report_bytes");
    bytes.map(|(_, labels, value)| (&*labels["path"], value.parse().unwrap())).collect()
}

const FORMS: [MetricsForm; 2] = [MetricsForm::OpenMetrics, MetricsForm::Prometheus];

#[test]
fn an_empty_set_is_a_text() {
    for form in FORMS {
        let samples = read(&ReportSet::new(), &OpenMetricsOptions::new().form(form));
        let values: Vec<_> = samples.iter().map(|(name, _, value)| (&**name, &**value)).collect();
        assert_eq!(values, [("memory_report_warnings", "0"), ("memory_report_omitted", "0")]);
    }
}

#[test]
fn units_are_metrics() {
    let mut reports = set(&[
        heap("explicit/a", 5),
        ("explicit/b", Kind::NonHeap, Units::Bytes, 7),
        ("files", Kind::Other, Units::Count, 3),
        ("faults", Kind::Other, Units::CountCumulative, 11),
        ("hit-rate", Kind::Other, Units::Percentage, -1234),
    ]);
    reports.add_run(ReporterRun::new("a", 1, Duration::from_millis(250), Vec::new()));
    for form in FORMS {
        let samples = read(&reports, &OpenMetricsOptions::new().form(form));
        let all: Vec<(&str, &str, &str, &str)> = samples
            .iter()
            .map(|(name, labels, value)| {
                let label = |name: &str| labels.get(name).map_or("", |value| &**value);
                (&**name, label("path"), label("kind"), &**value)
            })
            .collect();
        assert_eq!(
            all,
            [
                ("memory_report_bytes", "explicit/a", "heap", "5"),
                ("memory_report_bytes", "explicit/b", "nonheap", "7"),
                ("memory_report_items", "files", "other", "3"),
                ("memory_report_events_total", "faults", "other", "11"),
                ("memory_report_ratio", "hit-rate", "other", "-0.1234"),
                ("memory_report_duration_seconds", "", "", "0.25"),
                ("memory_report_warnings", "", "", "0"),
                ("memory_report_omitted", "", "", "0"),
            ]
        );
    }
}

#[test]
fn heap_unclassified_is_always_there_and_may_be_negative() {
    let reports = set(&[
        heap("explicit/a/large/part", 1_000_000),
        heap("explicit/b", 1000),
        ("heap-allocated", Kind::Other, Units::Bytes, 1_000_998),
    ]);
    for series in [500, 4, 1] {
        let samples = read(&reports, &OpenMetricsOptions::new().max_series(series));
        assert_eq!(by_path(&samples)["explicit/heap-unclassified"], -2, "{series}");
    }
}

#[test]
fn leaves_at_the_cut_add_up() {
    let mut paths = Vec::new();
    for a in 0..10 {
        for b in 0..10 {
            for c in 0..10 {
                for d in 0..3 {
                    paths.push((format!("explicit/a{a}/b{b}/c{c}/d{d}"), 1 + a * b * c * d));
                }
            }
        }
    }
    paths.push(("explicit/a0".to_owned(), 77)); // a report of an inner node
    paths.push(("explicit/a1 b/c".to_owned(), 3)); // between "a1" and "a1/" by its characters
    paths.push(("explicit/large/b/c/d/e/f".to_owned(), 1_000_000));
    let mut reports = ReportSet::new();
    for process in ["Main Process (pid 1)", "Web (pid 2)"] {
        for (path, amount) in &paths {
            reports.push(report(process, path, Kind::Heap, Units::Bytes, *amount));
        }
    }
    let sum: i64 = 2 * paths.iter().map(|(_, amount)| amount).sum::<i64>();
    for (series, threshold) in [(500, 1.0), (50, 1.0), (7, 1.0), (2, 1.0), (10_000, 0.0), (10_000, 100.0)] {
        let options = OpenMetricsOptions::new().max_series(series).threshold(threshold);
        let samples = read(&reports, &options);
        let bytes: Vec<_> = samples.iter().filter(|(name, ..)| name == "memory_report_bytes").collect();
        assert!(bytes.len() <= series, "{} of {series}", bytes.len());
        let found: i64 = bytes.iter().map(|(_, _, value)| value.parse::<i64>().unwrap()).sum();
        assert_eq!(found, sum, "{series}, {threshold}");
        // A few hundred pairs are enough; more pairs would make the test slow.
        for (_, labels, _) in bytes.iter().take(100) {
            let prefix = format!("{}/", labels["path"]);
            let below = |other: &&ProfileSample| {
                other.1["process"] == labels["process"] && other.1["path"].starts_with(&prefix)
            };
            assert!(!bytes.iter().any(below), "{prefix} counts twice");
        }
    }
    let samples = read(&reports, &OpenMetricsOptions::new());
    // A large path has a series, whatever its length is.
    assert_eq!(by_path(&samples)["explicit/large/b/c/d/e/f"], 1_000_000);
}

#[test]
fn labels_have_neither_addresses_nor_urls() {
    let reports = set(&[
        heap("explicit/window(0x7f0012345678)/a", 1),
        heap("explicit/window(0x7f0087654321)/a", 2),
        heap(r"explicit/top(https:\\user:secret@a.org\b?c, id=3)/d", 4),
        heap("explicit/flags 0x1", 8),
    ]);
    let samples = read(&reports, &OpenMetricsOptions::new());
    assert_eq!(
        by_path(&samples),
        BTreeMap::from([
            ("explicit/flags 0x1", 8),
            ("explicit/top(URL, id=3)/d", 4),
            ("explicit/window(ADDRESS)/a", 3),
        ])
    );
}

#[test]
fn threads_of_one_name_are_one_series() {
    let reports = set(&[
        heap("explicit/threads/stacks/main (tid=12)", 1),
        heap("explicit/threads/stacks/worker (tid=13)", 2),
        heap("explicit/threads/stacks/worker (tid=14)", 4),
        heap("explicit/threads/stacks/pool#0 (tid=15)/a", 8),
        heap("explicit/threads/stacks/pool#11 (tid=16)/a", 16),
        heap("explicit/threads/stacks/#11", 32),
        heap("explicit/threads/stacks/(tid=)", 64),
        heap("explicit/threads/stacks/(tid=1", 128),
    ]);
    let samples = read(&reports, &OpenMetricsOptions::new().depth(9));
    assert_eq!(
        by_path(&samples),
        BTreeMap::from([
            ("explicit/threads/stacks/main (tid=NNN)", 1),
            ("explicit/threads/stacks/worker (tid=NNN)", 6),
            ("explicit/threads/stacks/pool#N (tid=NNN)/a", 24),
            ("explicit/threads/stacks/#11", 32),
            ("explicit/threads/stacks/(tid=)", 64),
            ("explicit/threads/stacks/(tid=1", 128),
        ])
    );
}

#[test]
fn hostile_names_and_paths_do_no_harm() {
    let long = "x/".repeat(5000) + "é";
    let mut reports = ReportSet::new();
    for name in HOSTILE.iter().copied().chain([&*long, "/", "//a", "a/", "/é"]) {
        let path = format!("explicit/{name}/y");
        reports.push(report(name, &path, Kind::Heap, Units::Bytes, 1));
        reports.push(report(name, name, Kind::Other, Units::Bytes, 1));
    }
    for form in FORMS {
        for series in [500, 1] {
            let samples = read(&reports, &OpenMetricsOptions::new().form(form).max_series(series));
            assert!(samples.iter().all(|(_, labels, _)| labels.values().all(|value| value.len() < 600)));
        }
    }
}

#[test]
fn amounts_that_no_series_can_hold_are_counted() {
    let mut reports = set(&[("faults", Kind::Other, Units::CountCumulative, -1)]);
    for index in 0..20 {
        let path = format!("share-{index}");
        reports.push(report("p", &path, Kind::Other, Units::Percentage, index));
    }
    let samples = read(&reports, &OpenMetricsOptions::new().max_series(5));
    let (_, _, omitted) = samples.iter().find(|(name, ..)| name == "memory_report_omitted").unwrap();
    let ratios = samples.iter().filter(|(name, ..)| name == "memory_report_ratio").count();
    assert_eq!(omitted.parse::<usize>().unwrap() + ratios, 21);
    assert!(ratios > 0);
}

#[test]
fn amounts_beyond_doubles_are_written_exactly() {
    let samples =
        read(&set(&[heap("explicit/a", i64::MAX), heap("explicit/b", i64::MIN)]), &OpenMetricsOptions::new());
    assert_eq!(by_path(&samples)["explicit/a"], i128::from(i64::MAX));
    assert_eq!(by_path(&samples)["explicit/b"], i128::from(i64::MIN));
}
