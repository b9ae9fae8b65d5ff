//! Runs the examples for criterion and divan, and reads the figures that they print.

use std::path::PathBuf;
use std::process::Command;

/// The program of an example. Cargo builds the examples together with all tests of the package.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    let program = folder.join("examples").join(name);
    if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
        let arguments = ["build", "--locked", "--quiet", "-p", "memory-heap-test", "--example", name];
        let status = Command::new(env!("CARGO")).args(arguments).status().expect("cargo runs");
        assert!(status.success(), "{name}");
    }
    program
}

fn run(name: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(example(name))
        .args(["--bench"])
        .current_dir(folder.path())
        .env("CRITERION_HOME", folder.path())
        .output()
        .expect("the example runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The words of the line that starts with a text.
fn words<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(start));
    line.unwrap_or_else(|| panic!("{start}: {text}")).split_whitespace().collect()
}

#[test]
fn criterion_prints_the_same_figures_for_each_iteration() {
    let text = run("criterion_heap");
    // `collect` allocates its list once, and grows it from 4 to 8 and to 16 words.
    for (bench, blocks) in [("allocations/words/4", "5.0000"), ("allocations/words/16", "19.000")] {
        let line = words(&text, bench).join(" ");
        assert!(line.contains(&format!("[{blocks} blocks {blocks} blocks {blocks} blocks]")), "{line}");
    }
    let line = words(&text, "bytes/words/4").join(" ");
    assert!(line.contains(&format!("[{0}.00 B {0}.00 B {0}.00 B]", 4 * 24 + 4 * 4)), "{line}");
}

#[test]
fn divan_counts_through_the_allocator() {
    let text = run("divan_heap");
    assert!(text.contains("alloc:") && text.contains("grow:"), "{text}");
}
