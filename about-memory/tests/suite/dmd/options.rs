//! Options in the spellings of Firefox's scripts, and options that the scripts do not have.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use super::folder;

fn about_memory(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    command.args(arguments).current_dir(folder()).output().unwrap()
}

/// The output without the line that repeats the arguments.
fn text(arguments: &[&str]) -> String {
    let output = about_memory(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    super::without_echo(&String::from_utf8(output.stdout).unwrap())
}

const LIVE: &str = "live-basic.json";
const DARK: &str = "dark-matter-mixed.json";

#[test]
fn options_may_be_spelled_as_python_takes_them() {
    for (spelled, plain) in [
        (&["dmd", "--max", "3", LIVE][..], &["dmd", "--max-frames=3", LIVE][..]),
        (&["dmd", LIVE, "--m=3"], &["dmd", "-f", "3", LIVE]),
        (&["dmd", "-f=3", LIVE], &["dmd", "-f", "3", LIVE]),
        (&["dmd", "-f", " 3", LIVE], &["dmd", "-f", "3", LIVE]),
        (&["dmd", "-f", "+1_2", LIVE], &["dmd", "-f", "12", LIVE]),
        (&["dmd", "-f3", "-f", "1", LIVE], &["dmd", "-f", "1", LIVE]),
        (&["dmd", "-a", "-af", "2", LIVE], &["dmd", "--ignore-alloc-fns", "--max-frames", "2", LIVE]),
        (&["dmd", "--s", "req", "--ig", LIVE], &["dmd", "-s", "req", "-a", LIVE]),
        (&["dmd", "-s", "slop", "--sort-by", "num-blocks", "--", LIVE], &["dmd", "-snum-blocks", LIVE]),
        (&["dmd", "--no", "--no-fix-stacks", "-o", "-", LIVE], &["dmd", LIVE]),
        (&["dmd", "--filter", "-1", LIVE], &["dmd", "--filter=-1", LIVE]),
        (
            &["block", "scan-clamped.json", "7f0000001000", "-sfl", "12"],
            &["block", "scan-clamped.json", "7f0000001000", "--max-stack-frame-length=12"],
        ),
        (
            &["block", "-sfl=12", "--max-f", "1", "--ch", "scan-clamped.json", "7f0000001000"],
            &["block", "--max-stack", "12", "-cf1", "scan-clamped.json", "7f0000001000"],
        ),
    ] {
        assert_eq!(text(spelled), text(plain), "{spelled:?}");
    }
    for wrong in [
        &["dmd", "--filt", "x", LIVE][..],
        &["dmd", "--bogus", LIVE],
        &["dmd", "-f", "25", LIVE],
        &["dmd", "-f", "1__2", LIVE],
        &["dmd", "-f", "-1", LIVE],
        &["dmd", "--sort-by", "size", LIVE],
        &["dmd"],
        &["block", "scan-clamped.json"],
        &["block", "scan-clamped.json", "xyz"],
    ] {
        let output = about_memory(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_block_that_is_not_there_is_named_as_it_was_asked_for() {
    for asked in ["0x1234", "0X1234", "1234", "0001234", "ABCD"] {
        let expected =
            format!("Object {asked} not found in traces.\nIt could still be the target of some nodes.\n");
        let output = about_memory(&["block", "scan-clamped.json", asked]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn clamping_says_what_it_does() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("scan.json");
    fs::copy(folder().join("scan-contents.json"), &file).unwrap();
    let output = about_memory(&["dmd", "--clamp-contents", file.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "Creating block range list.\nClamping block contents.\nSaving file.\n");
}

#[test]
fn records_can_be_limited() {
    let all = text(&["dmd", DARK]);
    let limited = text(&["dmd", "--limit", "1", DARK]);
    for kind in ["Unreported {", "Once-reported {", "Twice-reported {"] {
        assert!(all.matches(kind).count() > 1, "{kind}");
        assert_eq!(limited.matches(kind).count(), 1, "{kind}");
    }
    let summary = |text: &str| text.split("Summary {").nth(1).unwrap().to_owned();
    assert_eq!(summary(&limited), summary(&all));
}

fn json(arguments: &[&str]) -> Value {
    let output = about_memory(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn json_has_the_sums_of_the_text() {
    let json = json(&[
        "dmd", "--json", "--by", "module", "--by", "size", "--by", "frame", "--by", "reporter", "--by",
        "type", DARK,
    ]);
    let sum = |rows: &Value| -> i64 {
        rows.as_array().unwrap().iter().map(|row| row["usable"].as_i64().unwrap()).sum()
    };
    assert_eq!(sum(&json["kinds"]), json["total"]["usable"].as_i64().unwrap());
    for kind in json["kinds"].as_array().unwrap() {
        assert_eq!(sum(&kind["shown"]), kind["usable"].as_i64().unwrap());
        let tables = kind["tables"].as_array().unwrap();
        let by: Vec<&str> = tables.iter().map(|table| table["by"].as_str().unwrap()).collect();
        assert_eq!(by, ["module", "size", "stack frame", "reporter", "type"]);
        for table in tables.iter().filter(|table| table["by"] != "stack frame") {
            assert_eq!(sum(&table["shown"]), kind["usable"].as_i64().unwrap(), "{table}");
        }
    }
}

#[test]
fn folded_stacks_have_all_bytes() {
    let folded = String::from_utf8(about_memory(&["dmd", "--folded", DARK]).stdout).unwrap();
    let sum: i64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap()).sum();
    let total = &json(&["dmd", "--json", DARK])["total"]["usable"];
    assert_eq!(Some(sum), total.as_i64());
    assert!(folded.lines().any(|line| line.starts_with("once-reported;reported by ")), "{folded}");
}

#[test]
fn report_stacks_can_be_filtered_by() {
    let count = |arguments: &[&str]| {
        let json = json(&[&["dmd", "--json", DARK], arguments].concat());
        let kinds: Vec<usize> = json["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| kind["shown"].as_array().unwrap().len())
            .collect();
        kinds
    };
    let all = count(&[]);
    let with = count(&["--report-filter", "dmd_report"]);
    let without = count(&["--report-filter", "!dmd_report"]);
    assert_eq!(with[1], 0, "nobody reported these");
    assert_eq!(without[1], all[1]);
    for kind in 0..3 {
        assert_eq!(with[kind] + without[kind], all[kind]);
    }
    assert!(with[2] > 0);
}

#[test]
fn blocks_without_a_stack_are_estimated_when_asked() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("partial.json");
    let dump = r##"{"version": 5, "invocation": {"dmdEnvVar": "1", "mode": "dark-matter"},
        "blockList": [{"req": 16, "alloc": "A"}, {"req": 16, "num": 9}],
        "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: made (f.rs:1)"}}"##;
    fs::write(&file, dump).unwrap();
    let file = file.to_str().unwrap();
    let (exact, guessed) = (text(&["dmd", file]), text(&["dmd", "--estimate", file]));
    assert!(guessed.contains("  ~10 blocks in heap block record 1 of 1\n"), "{guessed}");
    assert!(!exact.contains('~') && guessed.contains('~'), "{guessed}");
    assert!(guessed.contains("  Individual block sizes: unknown, as ~ marks estimates\n"), "{guessed}");
    let total = |text: &str| text.lines().find(|line| line.starts_with("  Total:")).unwrap().to_owned();
    assert_eq!(total(&exact), total(&guessed));
}

#[test]
fn a_dump_may_come_from_standard_input() {
    let piped = |arguments: &[&str], file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        let file = fs::File::open(folder().join(file)).unwrap();
        command.args(arguments).current_dir(folder()).stdin(file).output().unwrap()
    };
    for (arguments, file) in [
        (&["dmd", "-"][..], LIVE),
        (&["dmd", "--suggest", "-"], DARK),
        (&["dmd", "--json", LIVE, "-"], LIVE),
        (&["coverage", "-"], DARK),
        (&["block", "-", "7f0000001000"], "scan-clamped.json"),
        (&["block", "-", "7f0000001000", "--retained"], "scan-clamped.json"),
    ] {
        let named: Vec<&str> = arguments.iter().map(|word| if *word == "-" { file } else { word }).collect();
        let (piped, named) = (piped(arguments, file), about_memory(&named));
        assert!(piped.status.success(), "{arguments:?}: {piped:?}");
        let text = |output: Output| super::without_echo(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(text(piped), text(named), "{arguments:?}");
    }
    for wrong in
        [&["dmd", "-", "-"][..], &["dmd", "--clamp-contents", "-"], &["html", "-", "--dmd", "-", "-o", "-"]]
    {
        let output = piped(wrong, LIVE);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
}

#[test]
fn nothing_in_a_dump_deceives_a_reader() {
    let temporary = tempfile::tempdir().unwrap();
    let file = |mode: &str| {
        let blocks = match mode {
            "scan" => r#"{"req": 8, "addr": "7f00", "alloc": "A", "contents": ["7f00"]}"#,
            "dark-matter" => r#"{"req": 8, "alloc": "A"}, {"req": 9, "alloc": "A", "reps": ["A"]}"#,
            _ => r#"{"req": 8, "alloc": "A"}"#,
        };
        let dump = format!(
            r##"{{"version": 5, "invocation": {{"dmdEnvVar": "\u202e\u200b1", "mode": "{mode}"}},
            "blockList": [{blocks}], "traceTable": {{"A": ["B"]}},
            "reportPaths": [{{"path": "explicit/\u202ex", "claimed": 1, "marked": 2}}],
            "frameTable": {{"B": "#00: a\u202e\u2066\udb40\udc41::b (f\u200f.rs:1)"}}}}"##
        );
        let path = temporary.path().join(format!("{mode}.json"));
        fs::write(&path, dump).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (live, dark, scan) = (file("live"), file("dark-matter"), file("scan"));
    for arguments in [
        &["dmd", &live][..],
        &["dmd", &dark],
        &["dmd", "--folded", &live],
        &["dmd", "--folded", &dark],
        &["dmd", "--classic", &dark],
        &["dmd", "--json", &dark],
        &["dmd", "--suggest", &dark],
        &["dmd", "--by", "frame", "--by", "module", "--by", "reporter", "--by", "type", &dark],
        &["coverage", &dark],
        &["block", &scan, "7f00"],
        &["block", "--info", &scan, "7f00"],
        &["block", "--chain", "--retained", &scan, "7f00"],
    ] {
        let output = about_memory(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let raw = text.chars().find(|c| !c.is_ascii());
        assert!(raw.is_none() && text.contains("202e"), "{arguments:?}: {raw:?} {text}");
    }
}

#[test]
fn the_layout_of_2013_has_all_its_sections() {
    let text = String::from_utf8(about_memory(&["dmd", "--classic", DARK]).stdout).unwrap();
    let headings: Vec<&str> = text
        .lines()
        .zip(text.lines().skip(1))
        .filter(|(line, _)| line.starts_with("-----"))
        .map(|(_, title)| title)
        .filter(|title| !title.is_empty())
        .collect();
    assert_eq!(
        headings,
        [
            "Invocation",
            "Twice-reported stack trace records",
            "Unreported stack trace records",
            "Unreported stack frame records",
            "Once-reported stack trace records",
            "Once-reported stack frame records",
            "Summary",
            "Execution measurements",
        ]
    );
}

#[test]
fn suggestions_are_filtered_and_take_no_option_for_nothing() {
    let suggest = |arguments: &[&str]| {
        let output = about_memory(&[&["dmd", "--suggest", DARK], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (all, with) = (suggest(&[]), suggest(&["--filter", "Cache::insert"]));
    assert!(all.contains("Vec::push") && all.contains("Table::grow"), "{all}");
    assert!(with.starts_with("5,600 bytes in 50 blocks are not reported.\n"), "{with}");
    assert!(!with.contains("Vec::push") && with.contains("Table::grow"), "{with}");
    let without = suggest(&["--filter", "!Cache::insert"]);
    assert!(without.contains("Vec::push") && !without.contains("Table::grow"), "{without}");
    for option in ["--report-filter=x", "--sort-by=req", "--max-frames=3", "--estimate", "-a"] {
        let output = about_memory(&["dmd", "--suggest", option, DARK]);
        assert_eq!(output.status.code(), Some(2), "{option}");
    }
}

#[test]
fn coverage_is_of_the_time_of_the_reports() {
    let of = |arguments: &[&str]| about_memory(&[&["coverage"], arguments].concat());
    assert_eq!(of(&[DARK, "--at", "end"]).stdout, of(&[DARK]).stdout);
    for (time, reason) in
        [("peak", "the dump does not have the state of the heap at its peak"), ("2s", "of that time")]
    {
        let output = of(&[DARK, "--at", time]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn coverage_adds_up_to_the_heap() {
    let output = about_memory(&["coverage", DARK]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let total = json(&["dmd", "--json", DARK])["total"]["usable"].as_u64().unwrap();
    let digits: String = text.lines().next().unwrap().chars().filter(char::is_ascii_digit).collect();
    assert!(digits.contains(&total.to_string()), "{text}");
    let rows: Vec<u64> = text
        .lines()
        .skip_while(|line| *line != "By module {")
        .filter_map(|line| line.split_whitespace().next()?.replace(',', "").parse().ok())
        .collect();
    assert_eq!((rows.len(), rows.iter().sum::<u64>()), (3, total), "{text}");
    let output = about_memory(&["coverage", "--max-entries", "3", DARK]);
    assert_eq!(output.status.code(), Some(1));
    let output = about_memory(&["coverage", LIVE]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

/// For dumps of the crate `dmd`, the tables by type and by site have the same form. For Firefox's dumps, the table by
/// type is flat.
#[test]
fn types_are_shown_as_sites_are() {
    let shown = |arguments: &[&str]| {
        let output = about_memory(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let temporary = tempfile::tempdir().unwrap();
    let file = |modules: &str| {
        let dump = format!(
            r##"{{"version": 5, "invocation": {{"dmdEnvVar": "1", "mode": "live"}},
            "blockList": [{{"req": 5000, "alloc": "A"}}, {{"req": 3, "alloc": "B"}}],
            "traceTable": {{"A": ["V", "M"], "B": ["M"]}}{modules},
            "frameTable": {{"V": "#00: alloc::vec::Vec<T,A>::push<app::Job, alloc::alloc::Global> (/rustc/1/library/alloc/src/vec/mod.rs:9)",
                "M": "#00: app::main (/home/me/app/src/main.rs:1)"}}}}"##
        );
        let path = temporary.path().join(format!("{}.json", modules.len()));
        fs::write(&path, dump).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ours, firefox) = (file(r#", "modules": []"#), file(""));
    let first = "End:  4.89 KiB in 2 blocks.\n\n        bytes    share  Live by ";
    let types = shown(&["dmd", "--by", "type", &ours]);
    assert_eq!(
        types,
        format!(
            "{first}type\n     4.88 KiB   99.94%  [Job], or a type of the same layout\n          3 B    0.06%  (1 more)\n\n"
        )
    );
    let sites = shown(&["dmd", "--by", "site", &ours]);
    assert_eq!(sites, format!("{first}site\n     4.89 KiB  100.00%  app::main  src/main.rs:1\n\n"));
    let verbose = shown(&["dmd", "--by", "type", "--verbose", &ours]);
    assert!(verbose.contains("  [app::Job], or a type") && verbose.contains("  in app::main\n"), "{verbose}");
    for arguments in [&["dmd", "--by", "type", &firefox][..], &["dmd", "--by", "type", "-f", "1", &ours]] {
        let table = shown(arguments);
        assert!(table.contains("Live by type {\n  5,000 bytes"), "{arguments:?} {table}");
    }
    let tables = json(&["dmd", "--json", "--by", "type", &ours]);
    assert_eq!(tables["kinds"][0]["tables"][0]["by"], "type");
    // Each table names the time that it shows.
    let modules = shown(&["dmd", "--by", "module", "--by", "type", &ours]);
    assert!(modules.starts_with(&types) && modules.contains("Live by module {"), "{modules}");
}
