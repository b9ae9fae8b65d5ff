//! The example `object_language` as a user runs it: its log, its cycles and its censuses agree with the program that
//! it has run.

#![allow(clippy::unwrap_used, reason = "a test")]
// `./test` builds the example only in debug.
#![cfg(debug_assertions)]

use std::path::PathBuf;
use std::process::{Command, Output};

/// The path of the example in this test's build. Builds it unless `./test` has built it.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "-p", "examples", "--example", "object_language"]);
        assert!(cargo.arg("--target-dir").arg(profile.parent().unwrap()).status().unwrap().success());
    }
    profile.join("examples/object_language")
}

/// Runs a program of the language.
fn run(text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.txt");
    std::fs::write(&file, text).unwrap();
    Command::new(program()).arg(&file).env_remove("DMD").output().unwrap()
}

/// The rows below a heading: numbers by class.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<(u64, &'a str)> {
    let after = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading}: {text}")).1;
    let rows = after.lines().take_while(|line| !line.is_empty());
    rows.filter_map(|row| row.trim_start().split_once(' '))
        .filter_map(|(count, rest)| Some((count.parse().ok()?, rest.split_once(" B  ")?.1)))
        .collect()
}

#[test]
fn classes_of_the_language_are_in_the_log_and_in_censuses() {
    let output = run("
        class Point x y
        class Pair first second
        let kept = Point 1 2
        let all = Pair kept nil
        repeat 3000
            let lost = Point 3 4
        end
        repeat 5
            let all = Pair kept all
        end
    ");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let log = rows(&text, "allocations by class");
    let objects: Vec<_> = log.into_iter().filter(|(_, class)| *class != "(no object)").collect();
    assert_eq!(objects, [(6, "Pair"), (3001, "Point")]);
    let mut left = rows(&text, "remaining objects, by class");
    left.sort_by_key(|(_, class)| *class);
    // The last point of the loop still has a name.
    assert_eq!(left, [(6, "Pair"), (2, "Point")]);
    let by_stack = rows(&text, "remaining objects, by allocation stack");
    assert_eq!(by_stack.iter().map(|(count, _)| count).sum::<u64>(), 8);
    assert!(text.contains("\nallocate < Heap::make"), "{text}");
    let cycles: Vec<&str> = text.lines().filter(|line| line.starts_with("gc-arena cycle ")).collect();
    assert!(cycles.len() >= 2 && cycles[0].contains(": ALLOC_TRIGGER, slices: "), "{text}");
    assert!(cycles.last().unwrap().contains(", finished at once, slices: "), "{text}");
}

#[test]
fn a_bad_program_is_named() {
    let output = run("class Point x\nlet here = Point 1\nlet there : Point 2\n");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "object_language: line 3: `let there : Point 2`: expected class, let, forget, repeat or end\n"
    );
}
