//! Compares `about-memory dmd` and `about-memory block` with Firefox's `dmd.py` and `block_analyzer.py`.
//!
//! Texts (`.expected.txt`) and rewritten files come from Firefox. Messages about bad input (`.fails.txt`) are our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod files;
mod options;

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dmd")
}

fn is_file(argument: &str) -> bool {
    argument.ends_with(".json") || argument.ends_with(".json.gz")
}

/// Returns the start of the names of a run's golden files.
fn stem(tool: &str, arguments: &[&str]) -> String {
    let files: Vec<&str> = arguments
        .iter()
        .filter(|argument| is_file(argument))
        .map(|file| file.trim_end_matches(".gz").trim_end_matches(".json"))
        .collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "=._-".contains(c);
    let tags: Vec<String> = (tool == "block")
        .then_some(&tool)
        .into_iter()
        .chain(arguments)
        .filter(|argument| !is_file(argument) && **argument != "--no-fix-stacks")
        .map(|a| a.trim_start_matches('-').chars().map(|c| if plain(c) { c } else { '_' }).collect())
        .collect();
    let tag = if tags.is_empty() { "default".to_owned() } else { tags.join("+") };
    format!("{}.{tag}", files.join("__"))
}

/// Returns the text after the line that repeats the arguments.
fn without_echo(text: &str) -> String {
    text.split_inclusive('\n').enumerate().filter(|(line, _)| *line != 1).map(|(_, line)| line).collect()
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let tool = words.next().unwrap();
    let arguments: Vec<&str> = words.collect();
    let stem = stem(tool, &arguments);
    let temporary = tempfile::tempdir().unwrap();
    let files: Vec<&&str> = arguments.iter().filter(|argument| is_file(argument)).collect();
    for file in &files {
        fs::copy(folder().join(file), temporary.path().join(file)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .arg(tool)
        .args(&arguments)
        .current_dir(temporary.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() {
        assert_eq!(stdout, "", "{line}");
        let status = output.status.code().unwrap();
        let message = if status == 1 { &*stderr } else { "" };
        golden(&format!("{stem}.fails.txt"), &format!("exit {status}\n{message}"));
        return;
    }
    let expected = fs::read_to_string(folder().join(format!("{stem}.expected.txt"))).unwrap();
    if tool == "dmd" {
        assert_eq!(without_echo(&stdout), without_echo(&expected), "{line}");
    } else {
        assert_eq!(stdout, expected, "{line}");
    }
    if arguments.contains(&"--print-clamp-stats") {
        assert_eq!(
            stderr,
            fs::read_to_string(folder().join(format!("{stem}.stderr.txt"))).unwrap(),
            "{line}"
        );
    } else {
        assert_eq!(stderr, "", "{line}");
    }
    for file in files {
        let after = fs::read(temporary.path().join(file)).unwrap();
        let rewritten = folder().join(format!("{stem}.rewritten.json"));
        if arguments.contains(&"--clamp-contents") {
            let expected: Value = serde_json::from_slice(&fs::read(rewritten).unwrap()).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&after).unwrap(), expected, "{line}");
        } else {
            assert_eq!(after, fs::read(folder().join(file)).unwrap(), "{line}");
        }
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), files_once(&arguments), "{line}");
}

fn files_once(arguments: &[&str]) -> usize {
    arguments.iter().filter(|argument| is_file(argument)).collect::<std::collections::BTreeSet<_>>().len()
}

fn golden(name: &str, text: &str) {
    let path = folder().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, text).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(there, text, "{name} is out of date; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn prints_what_firefox_s_scripts_print() {
    let matrix = fs::read_to_string(folder().join("matrix.txt")).unwrap();
    let lines: Vec<&str> = matrix.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 60);
    for line in lines {
        run(line);
    }
}

#[test]
fn the_echo_is_that_of_firefox_s_script() {
    let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["dmd", "--no-fix-stacks"])
        .arg(folder().join("live-basic.json"))
        .output()
        .unwrap();
    let expected = fs::read(folder().join("live-basic.default.expected.txt")).unwrap();
    assert_eq!(output.stdout, expected);
}

#[test]
fn a_compressed_scan_dump_stays_compressed_when_it_is_clamped() {
    use std::io::{Read as _, Write as _};
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("scan.json.gz");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&fs::read(folder().join("scan-contents.json")).unwrap()).unwrap();
    fs::write(&path, packed.finish().unwrap()).unwrap();
    let clamp = |path: &Path| {
        Command::new(env!("CARGO_BIN_EXE_about-memory"))
            .args(["dmd", "--clamp-contents"])
            .arg(path)
            .output()
            .unwrap()
    };
    assert!(clamp(&path).status.success());
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    let expected = folder().join("scan-contents.clamp-contents+print-clamp-stats.rewritten.json");
    let expected: Value = serde_json::from_slice(&fs::read(expected).unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}
