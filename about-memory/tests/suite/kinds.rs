//! Runs each command with each kind of file. The command reads the file, or names the kind and the command to type.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn about_memory(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).args(arguments).output().unwrap()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Messages that explain more than the file's kind.
const EXPLANATIONS: [&str; 8] = [
    "has no ",
    "does not have ",
    "a dump has no history",
    "its mode is dark-matter",
    "its mode is live",
    "taken in mode dark-matter",
    "not a core file: ",
    "no node has the id 1",
];

/// Returns a file of each kind, with the name of the kind and a command to type.
fn files(folder: &Path) -> Vec<(&'static str, &'static str, PathBuf)> {
    let written = |name: &str, contents: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, contents).unwrap();
        path
    };
    let dump = golden("dmd/dark-matter-mixed.json");
    let profile = folder.join("profile.pb.gz");
    let table = folder.join("table.parquet");
    for output in [&profile, &table] {
        let arguments = ["export", dump.to_str().unwrap(), "-o", output.to_str().unwrap(), "--no-fix-stacks"];
        assert!(about_memory(&arguments).status.success());
    }
    let mut core = b"\x7fELF\x02\x01\x01".to_vec();
    core.resize(16, 0);
    core.extend([4, 0, 62, 0]);
    core.resize(64, 0);
    let snapshot =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden/small-a.fxsnapshot");
    let heap_profile =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dmd/analyze/tests/inputs/jemalloc.heap");
    let v8 = br#"{"snapshot":{"meta":{"node_fields":["type"]}}}"#;
    vec![
        ("a memory report", "about-memory show", golden("firefox/units.json")),
        ("a dump of DMD", "about-memory dmd", dump),
        ("a recording of DMD", "about-memory history", golden("heap/after.dmdrec")),
        ("a heap snapshot", "about-memory snapshot", snapshot),
        ("a pprof profile", "about-memory show", profile),
        ("a heap profile of jemalloc or gperftools", "about-memory show", heap_profile),
        ("a core file", "about-memory heap types", written("core", &core)),
        ("a program or a library", "about-memory run", env!("CARGO_BIN_EXE_about-memory").into()),
        ("an HTML page", "browser", written("page.html", b"<!DOCTYPE html>\n")),
        ("a Parquet table", "DuckDB", table),
        ("a heap snapshot of V8", "Chrome", written("v8.json", v8)),
    ]
}

/// Returns the arguments of each command that reads a file.
fn commands(file: &str, folder: &Path) -> Vec<Vec<String>> {
    let page = folder.join("page");
    let budget = folder.join("budget.toml");
    fs::write(&budget, "[budget]\nexplicit = \"1 GiB\"\n").unwrap();
    let lines = [
        "show FILE",
        "dmd FILE",
        "history FILE",
        "leaks FILE",
        "heap types FILE",
        "heap waste FILE",
        "heap why FILE str",
        "heap tasks FILE",
        "heap block FILE 1000",
        "heap coverage FILE",
        "snapshot info FILE",
        "snapshot census FILE",
        "snapshot tree FILE",
        "snapshot dominators FILE",
        "snapshot paths FILE --target 1",
        "snapshot individuals FILE --name x",
        "snapshot diff FILE FILE",
        "snapshot suspects FILE",
        "snapshot export FILE --to v8",
        "diff FILE FILE",
        "series FILE",
        "check FILE --budget BUDGET",
        "html FILE -o PAGE",
        "export FILE --format pprof -o PAGE",
        "export FILE --format openmetrics",
        "export FILE --format v8",
        "metrics FILE",
    ];
    let word = |word: &str| match word {
        "FILE" => file.to_owned(),
        "PAGE" => page.display().to_string(),
        "BUDGET" => budget.display().to_string(),
        word => word.to_owned(),
    };
    lines.map(|line| line.split(' ').map(word).collect()).into()
}

#[test]
fn a_command_reads_a_file_or_names_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (kind, next, path) in files(folder.path()) {
        for arguments in commands(path.to_str().unwrap(), folder.path()) {
            let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = about_memory(&words);
            let said = String::from_utf8(output.stderr).unwrap();
            let names = said.contains(&format!(": it is {kind}; ")) && said.contains(next);
            let explains = EXPLANATIONS.iter().any(|part| said.contains(part));
            let is_unreadable =
                ["UTF-8 at byte", "is not supported", "expected"].iter().any(|part| said.contains(part));
            match output.status.code() {
                Some(0) => {}
                Some(1 | 2) if (names || explains) && !is_unreadable => {}
                other => wrong.push(format!("{kind}: {} {}: {other:?} {said}", words[0], words[1])),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `show` has a first screen for each kind, with the next commands.
#[test]
fn show_has_a_first_screen_for_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, _, path) in files(folder.path()) {
        let expected: &[&str] = match kind {
            "a dump of DMD" => {
                &["by site", "by type", "Next: about-memory dmd ", "about-memory heap coverage "]
            }
            "a recording of DMD" => &["Peak:", "Live bytes", "Next: about-memory leaks "],
            "a heap snapshot" => &["4884 nodes", "retained by", "class\n", "Next: about-memory snapshot "],
            "a pprof profile" => &["by site", "by type", "Next: about-memory dmd ", "about-memory diff "],
            "a heap profile of jemalloc or gperftools" => {
                &["End:  ~34.09 MiB in ~231,0", "by site", "Next: about-memory dmd ", "about-memory diff "]
            }
            _ => continue,
        };
        let output = about_memory(&["show", path.to_str().unwrap()]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{kind}");
        for part in expected {
            assert!(text.contains(part), "{part}: {text}");
        }
        let refused = about_memory(&["show", path.to_str().unwrap(), "--depth", "1"]);
        assert_eq!(refused.status.code(), Some(2), "{kind}");
        assert!(String::from_utf8(refused.stderr).unwrap().contains(kind), "{kind}");
    }
}

#[test]
fn old_spellings_answer_as_the_new_ones() {
    let dump = golden("dmd/dark-matter-mixed.json").display().to_string();
    let scan = golden("dmd/scan-clamped.json").display().to_string();
    let report = golden("firefox/units.json").display().to_string();
    for (old, new) in [
        (vec!["coverage", &dump], vec!["heap", "coverage", &dump]),
        (vec!["block", &scan, "7f0000001000"], vec!["heap", "block", &scan, "7f0000001000"]),
        (
            vec!["block", &scan, "7f0000001000", "-sfl", "40"],
            vec!["heap", "block", &scan, "7f0000001000", "-sfl", "40"],
        ),
        (vec!["types", &dump], vec!["heap", "types", &dump]),
        (vec!["waste", &dump], vec!["heap", "waste", &dump]),
        (vec!["why", &dump, "str"], vec!["heap", "why", &dump, "str"]),
        (vec!["tasks", &dump], vec!["heap", "tasks", &dump]),
        (vec!["metrics", &report], vec!["export", "--format", "openmetrics", &report]),
        (vec!["watch", "4200001", "-c", "1"], vec!["show", "4200001", "-i", "2", "-c", "1"]),
        (vec!["dump", "4200001"], vec!["save", "--dump", "4200001"]),
    ] {
        assert_eq!(about_memory(&old), about_memory(&new), "{old:?}");
    }
}
