//! Hostile files: damaged, deep, or odd. Nothing panics, and the text shows all reports.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use memory_reporter::file::{self, ReadOptions};
use memory_reporter::tree::Forest;

fn show(bytes: &[u8]) {
    if let Ok(set) = file::read_from(bytes, &ReadOptions::new().max_bytes(1 << 24)) {
        let _ = super::shown(&set);
    }
}

/// A generator of pseudo-random numbers with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn damaged_files_never_panic() {
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let (step, changed, changed_packed) = if is_thorough { (7, 400, 30) } else { (28, 100, 8) };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/firefox");
    let mut random = Random(88172645463325252);
    for name in ["units.json", "invalid.json", "duplicates.json", "rand4.json"] {
        let whole = fs::read(folder.join(name)).unwrap();
        for end in (0..whole.len()).step_by(step) {
            show(&whole[..end]);
        }
        for _ in 0..changed {
            let mut damaged = whole.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] = match random.below(3) {
                    0 => damaged[at] ^ (1 << random.below(8)),
                    1 => b"0-9\"\\{}[]:,eE.\n/"[random.below(16)],
                    _ => random.below(256) as u8,
                };
            }
            show(&damaged);
        }
    }
    let packed = fs::read(folder.join("sample.json.gz")).unwrap();
    for _ in 0..changed_packed {
        let mut damaged = packed.clone();
        let at = random.below(damaged.len());
        damaged[at] ^= 1 << random.below(8);
        show(&damaged);
        show(&packed[..at]);
    }
}

#[test]
fn deep_paths_are_shown_without_recursion() {
    let mut reports = String::new();
    let deep = "a/".repeat(100_000);
    for name in ["x", "y"] {
        for root in ["explicit", "t"] {
            let path = format!("{root}/{deep}{name}");
            let comma = if reports.is_empty() { "" } else { "," };
            write!(
                reports,
                "{comma}{{\"process\":\"p\",\"path\":\"{path}\",\"kind\":1,\"units\":0,\"amount\":5}}"
            )
            .unwrap();
        }
    }
    let set = file::read_from(super::document(&reports).as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(Forest::new(&set).amount(&format!("t/{}", deep.trim_end_matches('/'))), Some(10));
    assert!(super::shown(&set).contains("10"));
}

#[test]
fn a_ladder_of_trees_is_shown_without_recursion() {
    let mut reports = String::new();
    let mut path = "t".to_owned();
    for _ in 0..3000 {
        path.push_str("/a");
        let comma = if reports.is_empty() { "" } else { "," };
        write!(
            reports,
            "{comma}{{\"process\":\"p\",\"path\":\"{path}/leaf\",\"kind\":2,\"units\":0,\"amount\":1}}"
        )
        .unwrap();
    }
    let set = file::read_from(super::document(&reports).as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(Forest::new(&set).amount("t"), Some(3000));
    assert_eq!(about_memory::text(&set).verbose(true).to_string().matches("leaf").count(), 3000);
}

#[test]
fn odd_paths_are_shown() {
    let path = |path: &str| {
        format!(
            "{{\"process\":\"p\",\"path\":\"{path}\",\"kind\":2,\"units\":1,\"amount\":1,\"description\":\"\"}}"
        )
    };
    let paths = ["", "/", "//", "a//b", "/a", "a/", "..", "<script>", "\\ud800", "\\u0000/\\u001b"];
    let reports = paths.map(path).join(",");
    let set = file::read_from(super::document(&reports).as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(set.len(), paths.len());
    assert!(set.warnings().is_empty());
    let text = super::shown(&set);
    assert!(text.contains("<script>"));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    let forest = Forest::new(&set);
    for (path, amount) in [("", 3), ("/a", 1), ("a", 2), ("a/", 2), ("a//b", 1), ("..", 1)] {
        assert_eq!(forest.amount(path), Some(amount), "{path}");
    }
}

/// The time of a diff and of a series is linear in the number of processes and paths.
#[test]
fn many_processes_and_deep_paths_are_compared() {
    let mut reports = String::new();
    for i in 0..30_000 {
        write!(
            reports,
            "{{\"process\": \"p{}\", \"path\": \"t{i}/x\", \"kind\": 2, \"units\": 1, \"amount\": 1}},",
            if i % 2 == 0 { 0 } else { i }
        )
        .unwrap();
        write!(
            reports,
            "{{\"process\": \"p0\", \"path\": \"l{i}\", \"kind\": 2, \"units\": 1, \"amount\": 1}},"
        )
        .unwrap();
    }
    let deep = "pid 1/".repeat(20_000);
    write!(
        reports,
        "{{\"process\": \"p\", \"path\": \"{deep}x\", \"kind\": 2, \"units\": 1, \"amount\": 1}}"
    )
    .unwrap();
    let set = file::read_from(super::document(&reports).as_bytes(), &ReadOptions::new()).unwrap();
    let empty = file::read_from(super::document("").as_bytes(), &ReadOptions::new()).unwrap();
    let difference = about_memory::diff(&empty, &set);
    assert_eq!(difference.len(), set.len());
    assert!(difference.iter().any(|report| report.path.starts_with("pid NNN/pid NNN/")));
    super::shown(&difference);
    let mut options = about_memory::SeriesOptions::default();
    options.depth = u32::MAX;
    let mut series = about_memory::Series::new(options);
    series.add("only", &set);
    assert_eq!(series.rows().len(), 30_000 * 3 + 101);
}

fn with_rules(rules: &[(String, String)], name: &str) -> String {
    let rules: Vec<_> = rules.iter().map(|(pattern, to)| serde_json::json!([pattern, to])).collect();
    let report = format!(
        "{{\"process\": \"\", \"path\": \"{name}\", \"kind\": 2, \"units\": 0, \"amount\": 5, \"description\": \"\"}}"
    );
    super::document(&report).replacen(
        '{',
        &format!("{{\"normalizeNames\": {}, ", serde_json::json!(rules)),
        1,
    )
}

#[test]
fn many_large_patterns_in_a_file_are_no_panic() {
    let rules: Vec<_> = (0..15).map(|i| (format!("x{i}y(\\w{{20}})z"), "N".to_owned())).collect();
    let set = file::read_from(with_rules(&rules, "cache").as_bytes(), &ReadOptions::new()).unwrap();
    let mut series = about_memory::Series::new(about_memory::SeriesOptions::default());
    series.add("one", &set);
    assert_eq!(series.rows()[0].path, "cache");
}

#[test]
fn rules_in_a_file_that_double_a_name_are_passed_over() {
    let rules: Vec<_> = (0..60).map(|_| (".+".to_owned(), "${0}${0}1".to_owned())).collect();
    let mut series = about_memory::Series::new(about_memory::SeriesOptions::default());
    series.add("one", &file::read_from(with_rules(&rules, "cache").as_bytes(), &ReadOptions::new()).unwrap());
    let rows = series.rows();
    assert_eq!(rows.len(), 1);
    assert!(rows[0].path.len() < 400, "{}", rows[0].path.len());
}
