//! The program: exit status, messages, pipes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn about_memory(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).args(arguments).output().unwrap()
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/firefox/units.json")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn shows_a_file() {
    let output = about_memory(&["show", sample().to_str().unwrap()]);
    assert!(output.status.success());
    let expected = fs::read(sample().with_file_name("units.expected.txt")).unwrap();
    assert_eq!(output.stdout, expected);
    assert_eq!(stderr(&output), "");
}

fn golden(name: &str) -> String {
    sample().with_file_name(name).to_str().unwrap().to_owned()
}

#[test]
fn shows_what_changed() {
    let (a, b) = (golden("diff.a.json"), golden("diff.b.json"));
    for (arguments, expected) in [
        (vec!["diff", &a, &b], "diff.expected.txt"),
        (vec!["diff", &a, &b, "--verbose"], "diff.verbose.expected.txt"),
    ] {
        let output = about_memory(&arguments);
        assert!(output.status.success());
        assert_eq!(output.stdout, fs::read(sample().with_file_name(expected)).unwrap());
        assert_eq!(stderr(&output), "");
    }
    let output = about_memory(&["diff", &a, &b, "--normalize", "grows|shrinks=>moves", "--filter", "moves"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n└──-6.00 MB (100.0%) ── moves [2]\n"), "{text}");
}

#[test]
fn conditions_fail_with_their_reasons() {
    let (a, b) = (golden("diff.a.json"), golden("diff.b.json"));
    let conditions =
        ["--fail-if", "explicit > +5%", "--fail-if", "explicit/grows > 6MiB", "--fail-if", "x == 1"];
    let output = about_memory(&[&["diff", &a, &b][..], &conditions].concat());
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, fs::read(golden("diff.expected.txt")).unwrap());
    let expected = "about-memory: explicit > +5%: 41.01 MiB to 44.02 MiB (+3.01 MiB, +7.33%)\n\
                    about-memory: x == 1: no report has this path\n";
    assert_eq!(stderr(&output), expected);

    let output = about_memory(&[&["diff", &a, &b, "--json"][..], &conditions].concat());
    assert_eq!(output.status.code(), Some(3));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed: Vec<_> = json["conditions"].as_array().unwrap().iter().map(|c| &c["failed"]).collect();
    assert_eq!(failed, [true, false, true]);
    assert_eq!(json["conditions"][0]["first"], 42_999_808);
    let changes = json["changes"].as_array().unwrap();
    let grows = changes.iter().find(|change| change["path"] == "explicit/grows").unwrap();
    let amounts = [&grows["first"], &grows["second"], &grows["change"]];
    assert_eq!(amounts, [5 << 20, 6 << 20, 1 << 20]);
    assert!(changes.iter().all(|change| change["path"] != "explicit/same"));
}

#[test]
fn no_condition_is_true() {
    let a = golden("diff.a.json");
    let output = about_memory(&["diff", &a, &a, "--fail-if", "explicit != 0"]);
    assert_eq!(output.status.code(), Some(2), "an unknown comparison is a usage error");
    let output = about_memory(&["diff", &a, &a, "--fail-if", "explicit > +0%", "--fail-if", "vsize < 1 GiB"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stderr(&output), "about-memory: vsize < 1 GiB: 900.00 MiB to 900.00 MiB\n");
    let output = about_memory(&["diff", &a, &a, "--fail-if", "explicit > +0%"]);
    assert!(output.status.success());
}

#[test]
fn a_budget_is_written_kept_and_exceeded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("budget.toml");
    let budget = file.to_str().unwrap();
    let (a, b) = (golden("diff.a.json"), golden("diff.b.json"));
    let output = about_memory(&["check", &a, "--budget", budget]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).ends_with("budget.toml: not found; --write creates it\n"));
    let output =
        about_memory(&["check", &a, "--budget", budget, "--write", "--path", "explicit", "--headroom", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read_to_string(&file).unwrap().ends_with("[budget]\nexplicit = \"43.1 MiB\"\n"));
    assert!(about_memory(&["check", &a, "--budget", budget]).status.success());
    let output = about_memory(&["check", &b, "--budget", budget]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        String::from_utf8(output.stdout.clone()).unwrap(),
        "FAILED  44.02 MiB  <= 43.1 MiB  explicit\n"
    );
    assert!(
        stderr(&output).ends_with("budget.toml:4: explicit <= 43.1 MiB: 44.02 MiB\n"),
        "{}",
        stderr(&output)
    );
    let output = about_memory(&["check", &b, "--budget", budget, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json[0]["failed"], &json[0]["amount"]), (&true.into(), &46_153_728.into()));

    fs::write(&file, "[budget]\nexplicit = 'much'\n").unwrap();
    let output = about_memory(&["check", &b, "--budget", budget]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("budget.toml:2: not a limit: much: "), "{}", stderr(&output));
}

#[test]
fn shows_many_files() {
    let (a, b) = (golden("diff.a.json"), golden("diff.b.json"));
    let arguments = ["series", &a, &b, &a, "--path", "explicit", "--path", "resident"];
    let output = about_memory(&arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "\n      [1]        [2]        [3]  change  %       path\n\
        170.00 MB  175.00 MB  170.00 MB             ▁█▁  resident\n\
        \u{20}41.01 MB   44.02 MB   41.01 MB             ▁█▁  explicit\n";
    assert!(text.ends_with(expected), "{text}");
    let output = about_memory(&[&arguments[..], &["--path", "x"]].concat());
    assert_eq!(stderr(&output), "about-memory: x: no file has a report with this path\n");
    let output = about_memory(&[&arguments[..], &["--json", "--sort", "name", "--process", "web"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["rows"][0]["path"], "explicit");
    assert_eq!(json["rows"][0]["amounts"], serde_json::json!([1 << 20, 3 << 20, 1 << 20]));
}

#[test]
fn shows_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["show", "-", "--verbose", "--filter", "^explicit", "--regex"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(sample()).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n94,503,257 B (100.0%) -- explicit\n"), "{text}");
    assert!(output.status.success());
}

#[test]
fn verbose_text_has_the_descriptions() {
    use memory_report::{Kind, Report, ReportSet, Units};
    let mut set = ReportSet::new();
    for (path, kind, units, description) in [
        ("explicit/cache/keys", Kind::Heap, Units::Bytes, "Memory used by the keys."),
        ("explicit/cache/values", Kind::Heap, Units::Bytes, "Two lines\nand \u{1b}[31mred."),
        ("explicit/none", Kind::Heap, Units::Bytes, ""),
        ("explicit/memory-reporter/registry", Kind::Heap, Units::Bytes, "Memory used by the list."),
        ("heap-allocated", Kind::Other, Units::Bytes, "Memory in live blocks."),
    ] {
        set.push(Report { process: "Main Process (pid 1)", path, kind, units, amount: 10, description });
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reports.json.gz");
    memory_report::file::write(&file, &set).unwrap();
    let file = file.to_str().unwrap();
    let shown = |options: &[&str]| {
        let output = about_memory(&[&["show", file], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let verbose = shown(&["--verbose"]);
    for line in [
        "── keys: Memory used by the keys.\n",
        "── values: Two lines\\u{a}and \\u{1b}[31mred.\n",
        "── none\n",
        "\n10 B ── heap-allocated: Memory in live blocks.\n",
    ] {
        assert!(verbose.contains(line), "{line:?} {verbose}");
    }
    assert!(verbose.contains(" -- cache [?!]\n"), "an inner node has no description: {verbose}");
    assert!(!shown(&[]).contains("Memory used"));
}

#[test]
fn a_bad_file_is_one_line_and_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("a\n\u{1b}[31m");
    let output = about_memory(&["show", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.starts_with("about-memory: "), "{message}");
    assert!(message.ends_with("a\\u{a}\\u{1b}[31m: not found\n"), "{message}");

    let output = about_memory(&["show", folder.path().to_str().unwrap()]);
    assert!(stderr(&output).ends_with(": is a directory\n"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_long_message_is_cut_in_the_middle() {
    let name = format!("{}/x.json", "é".repeat(400));
    let message = stderr(&about_memory(&["show", &name]));
    assert!(message.trim_end().len() <= 300, "{}", message.len());
    assert!(message.contains(" ... "), "{message}");
    assert!(message.starts_with("about-memory: é"), "{message}");
}

#[test]
fn wrong_usage_is_status_2() {
    let sample = sample();
    let sample = sample.to_str().unwrap();
    for arguments in [
        &["show", sample, "--filter", "(", "--regex"][..],
        &["show"],
        &["show", sample, "--regex"],
        &["no-such-command"],
        &["diff", sample],
        &["diff", "-", "-"],
        &["diff", sample, sample, "--fail-if", "explicit"],
        &["diff", sample, sample, "--normalize", "("],
        &["show", sample, "--threshold", "-1"],
        &["check", sample],
        &["series"],
        &["series", "-", "-"],
        &[],
    ] {
        let output = about_memory(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    let output = about_memory(&["show", sample, "--filter", "(", "--regex"]);
    assert_eq!(stderr(&output), "about-memory: not a regular expression: (\n");
}

#[test]
fn help_shows_examples() {
    for command in ["show", "diff", "check", "series"] {
        let output = about_memory(&[command, "--help"]);
        let example = format!("Examples:\n  about-memory {command} ");
        assert!(String::from_utf8(output.stdout).unwrap().contains(&example), "{command}");
    }
    let output = about_memory(&["--help"]);
    assert!(output.status.success());
    let first = "what do I type?\n  about-memory run -- my-program ";
    assert!(String::from_utf8(output.stdout).unwrap().contains(first));
}

#[test]
fn bad_reports_are_told_on_stderr_too() {
    let bad = sample().with_file_name("../ours/bad-reports.json");
    let output = about_memory(&["show", bad.to_str().unwrap()]);
    assert!(output.status.success());
    assert!(stderr(&output).ends_with(" warnings, shown at the top of the text\n"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let sample = sample().with_file_name("sample.json.gz");
    let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["show", "--verbose", sample.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(stderr(&output), "");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let output = about_memory(&["show", fifo.to_str().unwrap()]);
    assert!(stderr(&output).ends_with(": is not a regular file\n"));
}

#[test]
fn completions_and_manual_pages_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = about_memory(&["completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("minimize") && script.contains("fail-if"), "{shell}: {script}");
    }
    assert_eq!(about_memory(&["completions", "abacus"]).status.code(), Some(2));
    let page = String::from_utf8(about_memory(&["man"]).stdout).unwrap();
    assert!(page.contains(".TH about-memory 1") && page.contains("about\\-memory\\-diff(1)"), "{page}");
    let page = String::from_utf8(about_memory(&["man", "diff"]).stdout).unwrap();
    assert!(
        page.contains(".TH about-memory-diff 1") && page.contains("\\fBabout\\-memory diff\\fR"),
        "{page}"
    );
    let output = about_memory(&["man", "abacus"]);
    assert_eq!(output.status.code(), Some(2));
    let error = "abacus: is not a command; list the commands with: about-memory --help\n";
    assert_eq!(stderr(&output), format!("about-memory: {error}"));
}

#[test]
fn every_command_s_help_has_examples() {
    let help = String::from_utf8(about_memory(&["--help"]).stdout).unwrap();
    let commands = help.split("Usage: ").nth(1).unwrap().split("Options:").next().unwrap();
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let help = String::from_utf8(about_memory(&[command, "--help"]).stdout).unwrap();
        assert!(help.contains("Examples:\n  "), "{command}");
    }
}

/// A killed process leaves an incomplete file.
#[test]
fn an_incomplete_file_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, why) in [
        ("incomplete-12.json", "; the process that wrote it ended before the file was complete"),
        ("a.json", ""),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, "{\"version\": 5").unwrap();
        let output = about_memory(&["dmd", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).ends_with(&format!("truncated after 13 bytes{why}\n")),
            "{}",
            stderr(&output)
        );
    }
}
