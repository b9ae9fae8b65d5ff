//! Compares the state at the peak with a counting allocator that checks for a new peak after every event.

use std::collections::BTreeMap;

use dmd::analyze::{self, Analysis, AnalyzeOptions, DumpTime, RecordKind};
use serde_json::Value;

use crate::support::{command, frames, preloaded, read_dump, succeed, victim};

/// The output of a victim: for each name, the numbers after it.
fn told(stdout: &[u8]) -> BTreeMap<String, Vec<i64>> {
    let lines = std::str::from_utf8(stdout).unwrap().lines();
    let parsed = lines.map(|line| {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_owned();
        (name, words.map(|word| word.parse().unwrap()).collect())
    });
    parsed.collect()
}

/// The allowed difference from a peak.
fn tolerance(peak: i64) -> i64 {
    (peak / 100).max(64 << 10)
}

fn check(story: &str, options: &str, by_preload: bool) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("peak.json");
    let program = victim("peak");
    let mut command = if by_preload { preloaded(program, options) } else { command(program) };
    let output = succeed(command.env("DMD", options).arg(story).arg(&file));
    let told = told(&output.stdout);
    let dump = read_dump(&file);
    let peak = &dump["peak"];
    assert_eq!(peak["measure"], "usable");
    let what = format!("{story} {options} {by_preload}");

    let expected = told["peak"][0];
    let bytes = peak["bytes"].as_i64().unwrap();
    // A preloaded library also records blocks of the C library.
    let (within, tolerance) = (peak["within"].as_i64().unwrap(), tolerance(expected));
    assert!(within <= tolerance, "{what}: within {within}");
    let others = if by_preload { 80 << 10 } else { 0 };
    assert!((bytes - expected).abs() <= tolerance + others, "{what}: {bytes}, expected {expected}");

    let stacks = peak["stacks"].as_array().unwrap();
    let sum = |member: &str| stacks.iter().map(|stack| stack[member].as_i64().unwrap()).sum::<i64>();
    assert_eq!((sum("bytes"), sum("num")), (bytes, peak["blocks"].as_i64().unwrap()), "{what}");
    let seconds = |object: &Value| object["seconds"].as_f64().unwrap();
    assert!(seconds(peak) <= seconds(&dump["statistics"]), "{what}");

    for (name, numbers) in told.iter().filter(|(name, _)| *name != "peak") {
        let found = if numbers[1] == 0 { 0 } else { bytes_of_size(&dump, numbers[0] / numbers[1]) };
        assert!((found - numbers[0]).abs() <= tolerance, "{what}: {name} {found}, expected {numbers:?}");
    }

    let at_peak = analyze::read(&file).unwrap().at(DumpTime::Peak).unwrap();
    let sums = Analysis::new(at_peak, &AnalyzeOptions::new()).sums(RecordKind::Live);
    assert_eq!((sums.usable(), sums.num), (i128::from(bytes), i128::from(sum("num"))), "{what}");
}

/// The bytes at the peak in stacks whose blocks have this size.
fn bytes_of_size(dump: &Value, size: i64) -> i64 {
    let stacks = dump["peak"]["stacks"].as_array().unwrap();
    let amount = |stack: &Value, member| stack[member].as_i64().unwrap();
    let of_size = stacks.iter().filter(|stack| amount(stack, "bytes") == size * amount(stack, "num"));
    of_size
        .map(|stack| {
            assert!(!frames(dump, &stack["alloc"]).is_empty());
            amount(stack, "bytes")
        })
        .sum()
}

const STORIES: [&str; 7] =
    ["at-end", "grow-shrink-grow", "half-freed", "many-stacks", "moves", "threads", "fork"];

#[test]
fn by_the_wrapper() {
    for story in STORIES {
        check(story, "--mode=live --stacks=full --quiet", false);
    }
}

#[test]
fn by_the_preloaded_library() {
    for story in STORIES {
        check(story, "--mode=live --stacks=full --quiet", true);
    }
}

#[test]
fn in_other_modes() {
    for mode in ["dark-matter", "cumulative"] {
        check("half-freed", &format!("--mode={mode} --stacks=full --quiet"), false);
    }
}
