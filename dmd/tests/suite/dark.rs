//! The report of a program that records itself: `heap-unclassified` by crate and function.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use memory_reporter::file;
use memory_reporter::tree::Forest;
use serde_json::Value;

use crate::support::{command, count, golden, preloaded, read_dump, succeed, victim};

const UNCLASSIFIED: &str = "explicit/heap-unclassified/";
const TWICE: &str = "twice-reported/";

/// The bytes at each path of the second report of the victim.
fn report(run: impl FnOnce(&std::path::Path)) -> BTreeMap<String, i64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    run(&path);
    let set = file::read(&path).unwrap();

    let heap: i64 = set
        .iter()
        .filter(|report| report.path.starts_with("explicit/") && report.kind == memory_reporter::Kind::Heap)
        .map(|report| report.amount)
        .sum();
    let allocated = set.iter().find(|report| report.path == "heap-allocated").unwrap().amount;
    assert_eq!(heap, allocated, "all of the heap is in the tree, to the byte");

    let forest = Forest::new(&set);
    let children: i128 =
        set.iter().filter(|r| r.path.starts_with(UNCLASSIFIED)).map(|r| i128::from(r.amount)).sum();
    assert_eq!(forest.amount("explicit/heap-unclassified"), Some(children));
    assert!(forest.warnings().is_empty(), "{:?}", forest.warnings());

    let mut amounts = BTreeMap::new();
    for report in set.iter() {
        assert!(amounts.insert(report.path.to_owned(), report.amount).is_none(), "{} twice", report.path);
    }
    amounts
}

/// The bytes of all functions with this name below a root, and the number of their paths.
fn of_function(amounts: &BTreeMap<String, i64>, root: &str, function: &str) -> (i64, usize) {
    let paths = || amounts.iter().filter(|(path, _)| path.starts_with(root) && path.ends_with(function));
    (paths().map(|(_, amount)| amount).sum(), paths().count())
}

/// Paths with fewer bytes than these get no number.
const FEW: i64 = 50_000;
/// The engine keeps the frames that it has looked up in the program's heap, where they are part of `(rest)`.
const FRAMES: i64 = 20_000;

/// Paths with rounded amounts, so that small differences do not matter.
fn rounded(amounts: &BTreeMap<String, i64>) -> String {
    let mut text = String::new();
    for (path, amount) in amounts {
        if path.starts_with(UNCLASSIFIED) || path.starts_with(TWICE) {
            let few = if path.ends_with("/(rest)") { FEW + FRAMES } else { FEW };
            let amount = if amount.abs() < few { "few".into() } else { format!("{}k", amount / 10_000 * 10) };
            writeln!(text, "{amount:>6} {path}").unwrap();
        }
    }
    text
}

#[test]
fn the_function_is_named_that_allocated_what_nobody_reports() {
    let amounts = report(|path| {
        succeed(command(victim("dark")).arg(path).env("DMD", "--stacks=full --quiet"));
    });
    // The C library gives 104 for 100, and 300,024 or so (mapped) for 300,000.
    let (large, paths) = of_function(&amounts, UNCLASSIFIED, "dark/dark::forget_large");
    assert!((300_000..310_000).contains(&large) && paths == 1, "{large}: {amounts:#?}");
    let (small, paths) = of_function(&amounts, UNCLASSIFIED, "dark/dark::forget_small");
    assert!((2_080_000..2_090_000).contains(&small) && paths == 1, "{small}: {amounts:#?}");
    // Reported blocks are not in it.
    assert_eq!(of_function(&amounts, UNCLASSIFIED, "name_twice").1, 0);
    golden("dark_full.txt", &rounded(&amounts));
}

#[test]
fn what_is_reported_twice_has_its_own_tree() {
    let amounts = report(|path| {
        succeed(command(victim("dark")).arg(path).env("DMD", "--stacks=full --quiet"));
    });
    let twice: i64 = amounts.iter().filter(|(path, _)| path.starts_with(TWICE)).map(|(_, n)| n).sum();
    assert_eq!(twice, amounts["explicit/names"]);
    assert_eq!(twice, amounts["explicit/names-again"]);
    assert_eq!(-twice, amounts["explicit/heap-unclassified/(counted twice)"]);
}

#[test]
fn estimates_are_marked() {
    let amounts = report(|path| {
        succeed(command(victim("dark")).arg(path).env("DMD", "--quiet"));
    });
    // All blocks of this function have the same size, so the estimate is close to the true sum.
    let (small, paths) = of_function(&amounts, UNCLASSIFIED, "dark/~dark::forget_small");
    assert!((2_070_000..2_095_000).contains(&small) && paths == 1, "{small}: {amounts:#?}");
}

#[test]
fn a_preloaded_engine_tells_it_too() {
    let amounts = report(|path| {
        succeed(preloaded(victim("dark"), "--stacks=full --quiet").arg(path));
    });
    // DMD also records the C library's blocks, which `heap-allocated` does not count: the path may have a `~`.
    let (small, _) = of_function(&amounts, UNCLASSIFIED, "dark::forget_small");
    assert!((2_070_000..2_090_000).contains(&small), "{small}: {amounts:#?}");
}

#[test]
fn without_recording_there_is_no_such_tree() {
    let folder = tempfile::tempdir().unwrap();
    for options in [None, Some("--mode=live --quiet")] {
        let path = folder.path().join("report.json");
        let mut command = command(victim("dark"));
        if let Some(options) = options {
            command.env("DMD", options);
        }
        succeed(command.arg(&path));
        let set = file::read(&path).unwrap();
        assert!(set.iter().all(|r| !r.path.starts_with(UNCLASSIFIED) && !r.path.starts_with(TWICE)));
    }
}

fn withdrawn(what: &str) -> Command {
    let mut command = command(victim("withdrawn"));
    // A panic takes long to print its stack.
    command.arg(what).env("DMD", "--stacks=full --quiet").env("RUST_BACKTRACE", "0");
    command
}

#[test]
fn what_is_left_out_is_not_reported() {
    let amounts = report(|path| {
        succeed(withdrawn("report").arg(path));
    });
    assert!((1_000_000..1_010_000).contains(&amounts["explicit/pages"]), "{amounts:#?}");
    let twice: Vec<_> = amounts.keys().filter(|path| path.starts_with(TWICE)).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(of_function(&amounts, UNCLASSIFIED, "report_well::{{closure}}").1, 0, "{amounts:#?}");
    // The collection's threads allocate after it has read `heap-allocated`; the largest loses at most 1% by that.
    let (lost, paths) = of_function(&amounts, UNCLASSIFIED, "withdrawn::lose::{{closure}}");
    assert!((1_975_000..2_020_000).contains(&lost) && paths == 1, "{lost}: {amounts:#?}");
    assert!(amounts.keys().all(|path| !path.contains("caught") && !path.contains("late")));
}

#[test]
fn a_dump_has_no_mark_of_what_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    succeed(withdrawn("dump").arg(&file));
    let dump = read_dump(&file);
    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    assert_eq!(count(&dump, |block| block["req"] == 10_000 && reports(block) == 1), 100);
    assert_eq!(count(&dump, |block| block["req"] == 20_000 && reports(block) == 0), 100);
    for path in dump["reportPaths"].as_array().unwrap() {
        for bytes in [&path["claimed"], &path["marked"]] {
            assert_eq!(bytes.as_u64() >= Some(1_000_000), path["path"] == "explicit/pages", "{path}");
        }
        assert!(path["path"] != "explicit/pages" || path["claimed"] == path["marked"], "{path}");
    }
}
