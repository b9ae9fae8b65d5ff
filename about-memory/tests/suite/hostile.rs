//! Hostile files: damaged, deep, or unusual. The program never panics, and the text shows all reports.

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

/// The time of a diff and of a series grows linearly with the number of processes and paths.
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
    let options = about_memory::SeriesOptions::new().depth(u32::MAX);
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

/// The page escapes the same characters as the other views. The two lists, in Rust and in TypeScript, are maintained
/// separately.
#[test]
fn the_page_escapes_the_same_characters() {
    let source = include_str!("../../ui/src/text/escape.ts");
    let (_, set) = source.split_once("const DECEPTIVE =\n  /[\\p{Cc}").unwrap();
    let set = set.split_once("]/gu;").unwrap().0;
    let ends = set.split("\\u{").skip(1).map(|part| {
        let (hex, rest) = part.split_once('}').unwrap();
        (u32::from_str_radix(hex, 16).unwrap(), rest == "-")
    });
    let mut listed = std::collections::BTreeSet::new();
    let mut from = None;
    for (code, is_start) in ends {
        let first = from.take().unwrap_or(code);
        match is_start {
            true => from = Some(code),
            false => listed.extend(first..=code),
        }
    }
    for c in '\0'..=char::MAX {
        let is_listed = c.is_control() || listed.contains(&u32::from(c));
        assert_eq!(is_listed, memory_report::is_deceptive(c), "U+{:X}", u32::from(c));
    }
}

/// Names that would look equal to other names in a terminal, in files of each kind. No command prints them unescaped.
#[test]
fn no_command_prints_what_deceives() {
    use heap_graph::snapshot::SnapshotWriteOptions;
    use heap_graph::{GraphBuilder, NodeId, NodeParts};

    let names =
        ["safe::T\u{200b}ype", "a\u{202e}gnp", "nul\0b", "esc\u{1b}[31m", "nl\nFAKE\r\nLINE", "ls\u{2028}x"];
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    for (place, file) in ["a", "b\u{202e}nosj"].into_iter().enumerate() {
        let factor = 1 + place;
        let reports: Vec<_> = names
            .iter()
            .flat_map(|name| {
                let one = |path: String| {
                    serde_json::json!({ "process": name, "path": path, "kind": 1, "units": 0, "amount": factor << 20,
                        "description": name })
                };
                [one(format!("explicit/{name}/x")), one(format!("{name}/y")), one((*name).to_owned())]
            })
            .collect();
        write(
            &format!("{file}.json"),
            serde_json::json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": reports })
                .to_string(),
        );
        let frames: serde_json::Map<_, _> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (format!("F{at}"), format!("#00: {name} ({name}:{at})").into()))
            .collect();
        let traces: serde_json::Map<_, _> =
            (0..names.len()).map(|at| (format!("T{at}"), serde_json::json!([format!("F{at}")]))).collect();
        let blocks: Vec<_> = (0..names.len())
            .map(|at| serde_json::json!({ "req": 1000 * factor, "alloc": format!("T{at}") }))
            .collect();
        for (kind, mode) in [("live", "live"), ("dark", "dark-matter")] {
            write(
                &format!("{file}-{kind}.json"),
                serde_json::json!({ "version": 5, "invocation": { "dmdEnvVar": names[1], "mode": mode },
                    "blockList": blocks, "traceTable": traces, "frameTable": frames })
                .to_string(),
            );
        }
        let mut builder = GraphBuilder::new();
        let root = builder.text("Root").unwrap();
        builder.node(NodeParts::new(NodeId(1), 8, root)).unwrap();
        let texts = names.map(|name| builder.text(name).unwrap());
        for (at, text) in texts.iter().enumerate() {
            builder.edge(NodeId(10 + at as u64), Some(*text)).unwrap();
        }
        for (at, text) in texts.iter().enumerate() {
            builder.node(NodeParts::new(NodeId(10 + at as u64), 1000 * factor as u64, *text)).unwrap();
        }
        let mut out = fs::File::create(folder.path().join(format!("{file}.fxsnapshot"))).unwrap();
        heap_graph::snapshot::write(&builder.finish().unwrap(), &mut out, &SnapshotWriteOptions::new())
            .unwrap();
    }
    let of_both = [
        "diff a.json b\u{202e}nosj.json",
        "series a.json b\u{202e}nosj.json --depth 3 --threshold 0",
        "diff a-live.json b\u{202e}nosj-live.json",
        "snapshot diff a.fxsnapshot b\u{202e}nosj.fxsnapshot",
    ];
    let of_one = [
        "show F.json",
        "show F.json --verbose",
        "dmd F-live.json",
        "dmd F-dark.json",
        "dmd F-dark.json --firefox",
        "dmd F-dark.json --suggest",
        "coverage F-dark.json",
        "leaks F-live.json",
        "metrics F.json",
        "snapshot info F.fxsnapshot",
        "snapshot census F.fxsnapshot",
        "snapshot tree F.fxsnapshot",
        "snapshot dominators F.fxsnapshot",
        "snapshot suspects F.fxsnapshot",
        "snapshot paths F.fxsnapshot --target 12",
        "show no-F.json",
        "snapshot info no-F.fxsnapshot",
    ];
    let files = ["a", "b\u{202e}nosj"];
    let commands = of_one.iter().flat_map(|line| files.map(|file| line.replace('F', file)));
    let mut printed = 0;
    for line in commands.chain(of_both.map(str::to_owned)) {
        let arguments: Vec<_> = line.split(' ').collect();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_about-memory"))
            .args(&arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert_ne!(output.status.code(), Some(2), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
        for stream in [output.stdout, output.stderr] {
            let text = String::from_utf8(stream).unwrap();
            let is_bad = |c: char| memory_report::is_deceptive(c) && c != '\n' && c != '\t';
            let at = text.find(is_bad).unwrap_or(text.len());
            assert_eq!(text.get(at..), Some(""), "{line:?}");
            assert!(
                !text.lines().any(|line| line.starts_with("FAKE") || line.starts_with("LINE")),
                "{line:?}: {text}"
            );
            printed += text.matches("\\u{").count();
        }
    }
    assert!(printed > 100, "too few names were printed: {printed}");
}
