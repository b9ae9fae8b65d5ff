//! Both hooks give the same dumps of the smoke steps (`tests/victims/smoke/steps.rs`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use dmd::Sampler;
use serde_json::Value;

use crate::support::{command, count, golden, number_of, preloaded, read_dump, succeed, victim};

/// Blocks merged by stacks, like in `dmd.py`. Addresses differ from run to run, so each stack gets a name by the order
/// of its blocks.
fn records(dump: &Value) -> String {
    let mut by_stacks = BTreeMap::<String, Vec<String>>::new();
    for block in dump["blockList"].as_array().unwrap() {
        let stacks = format!("{} {}", block["alloc"], block["reps"]);
        let slop = block.get("slop").and_then(Value::as_u64).unwrap_or(0);
        let reported = block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
        by_stacks.entry(stacks).or_default().push(format!(
            "{} x {} + {slop}, reported {reported}",
            number_of(block),
            block["req"]
        ));
    }
    let mut records: Vec<_> = by_stacks
        .into_values()
        .map(|mut blocks| {
            blocks.sort();
            blocks.join("\n    ")
        })
        .collect();
    records.sort();
    records.into_iter().fold(String::new(), |mut text, record| {
        writeln!(text, "  {record}").unwrap();
        text
    })
}

fn check(folder: &Path) {
    let mut all = String::new();
    for mode in ["live", "dark-matter", "cumulative"] {
        for part in ["empty", "full1", "full2"] {
            let dump = read_dump(folder.join(format!("{part}-{mode}.json")));
            assert_eq!(dump["version"], 5);
            assert_eq!(dump["invocation"]["mode"], mode);
            writeln!(all, "{part} {mode}\n{}", records(&dump)).unwrap();
        }
    }
    golden("smoke.txt", &all);

    let dark = read_dump(folder.join("full1-dark-matter.json"));
    assert_eq!(dark["reportFaultCounts"]["not-heap"], 1, "a pointer to the stack");

    let partial = read_dump(folder.join("partial.json"));
    let mut sampler = Sampler::new();
    for (requested, usable) in [(16, 24), (128, 136), (1024, 1032)] {
        let chosen = (0..10_000).filter(|_| sampler.trial(usable)).count() as u64;
        let of_size = |block: &Value| block["req"] == requested;
        assert_eq!(count(&partial, of_size), 10_000, "{requested}");
        assert_eq!(count(&partial, |block| of_size(block) && block.get("alloc").is_some()), chosen);
    }

    let sampled = read_dump(folder.join("sample-below.json"));
    assert_eq!(sampled["sampling"]["sampleBelow"], 1009);
    // 1,000 blocks of 104 usable bytes.
    assert_eq!(count(&sampled, |block| block["sampled"] == true && block["req"] == 1009), 104_000 / 1009);
    assert_eq!(count(&sampled, |block| block["sampled"].is_null()), 5);

    let scan = read_dump(folder.join("scan.json"));
    let [block] = scan["blockList"].as_array().unwrap().as_slice() else { panic!("{scan}") };
    let start = usize::from_str_radix(block["addr"].as_str().unwrap(), 16).unwrap();
    let hex = |word: usize| Value::from(format!("{word:x}"));
    let words = [hex(123), hex(0), hex(start - 1), hex(start), hex(start + 1), hex(0)];
    assert_eq!(block["contents"].as_array().unwrap(), &words);
}

#[test]
fn by_the_wrapper() {
    let folder = tempfile::tempdir().unwrap();
    // No path has a length that depends on the folder of the test: the path's block would change the sizes of later
    // blocks.
    succeed(command(victim("smoke_wrapper")).arg(".").current_dir(folder.path()).env("DMD", "--quiet"));
    check(folder.path());
}

#[test]
fn by_libdmd() {
    let folder = tempfile::tempdir().unwrap();
    succeed(preloaded(victim("smoke_preloaded"), "--quiet").arg(folder.path()));
    check(folder.path());
}

#[test]
fn by_both() {
    let folder = tempfile::tempdir().unwrap();
    succeed(preloaded(victim("smoke_wrapper"), "--quiet").arg(folder.path()));
    check(folder.path());
}
