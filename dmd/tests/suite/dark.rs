//! The report of a program that records itself: `heap-unclassified` by crate, type and function.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use memory_reporter::tree::Forest;
use memory_reporter::{ReportSet, file};
use serde_json::Value;

use crate::support::{command, count, golden, preloaded, read_dump, succeed, victim, warnings};

const UNCLASSIFIED: &str = "explicit/heap-unclassified/";
const TWICE: &str = "twice-reported/";

/// The second report of the victim. Checks that its amounts add up.
fn report_set(run: impl FnOnce(&std::path::Path)) -> ReportSet {
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
    set
}

/// The bytes at each path of the second report of the victim.
fn report(run: impl FnOnce(&std::path::Path)) -> BTreeMap<String, i64> {
    amounts(&report_set(run))
}

fn amounts(set: &ReportSet) -> BTreeMap<String, i64> {
    let mut amounts = BTreeMap::new();
    for report in set.iter() {
        assert!(amounts.insert(report.path.to_owned(), report.amount).is_none(), "{} twice", report.path);
    }
    amounts
}

/// The bytes of a function, as `CRATE/FUNCTION`, below a root, and the number of its paths. There may be a type
/// between crate and function.
fn of_function(amounts: &BTreeMap<String, i64>, root: &str, name: &str) -> (i64, usize) {
    let is_of_function = |path: &str| {
        let Some(path) = path.strip_prefix(root) else { return false };
        let Some((module, function)) = name.split_once('/') else { return path.ends_with(name) };
        path.starts_with(module) && path.ends_with(&format!("/{function}"))
    };
    let paths = || amounts.iter().filter(|(path, _)| is_of_function(path));
    (paths().map(|(_, amount)| amount).sum(), paths().count())
}

/// Paths with fewer bytes than this are written without a number.
const FEW: i64 = 50_000;

/// Paths with rounded amounts, so that small differences do not matter.
fn rounded(amounts: &BTreeMap<String, i64>) -> String {
    let mut text = String::new();
    for (path, amount) in amounts {
        if path.starts_with(UNCLASSIFIED) || path.starts_with(TWICE) {
            let amount = if amount.abs() < FEW { "few".into() } else { format!("{}k", amount / 10_000 * 10) };
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
    // The C library's usable sizes are 104 for 100 bytes, and about 303,088 (a mapping) for 300,000 bytes.
    let (large, paths) = of_function(&amounts, UNCLASSIFIED, "dark/dark::forget_large");
    assert!((300_000..310_000).contains(&large) && paths == 1, "{large}: {amounts:#?}");
    let (small, paths) = of_function(&amounts, UNCLASSIFIED, "dark/dark::forget_small");
    assert!((2_080_000..2_090_000).contains(&small) && paths == 1, "{small}: {amounts:#?}");
    // Reported blocks are not in `heap-unclassified`.
    assert_eq!(of_function(&amounts, UNCLASSIFIED, "name_twice").1, 0);
    // DMD has every block of the heap, and its own memory is not in the heap.
    let rest = amounts[&format!("{UNCLASSIFIED}(rest)")];
    assert!(rest.abs() < 1000, "{rest}");
    assert!((50_000..500_000).contains(&amounts["explicit/dmd/working-memory"]), "{amounts:#?}");
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
    // DMD also records the C library's blocks, and `heap-allocated` does not count them: the path may have a `~`.
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
    // `RUST_BACKTRACE=0`, because a panic takes long to print its stack.
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
    // The collection's threads allocate after the collection has read `heap-allocated`. So the largest amount may be
    // up to 1 % too small.
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

const BY_AMOUNT: &str = "explicit/heap-unclassified/(reported by amount, blocks unknown)";

#[test]
fn amounts_without_blocks_are_a_row_of_their_own() {
    let set = report_set(|path| {
        let mut victim = command(victim("amounts"));
        succeed(victim.arg("report").arg(path).env("DMD", "--stacks=full --quiet"));
    });
    let amounts = amounts(&set);
    assert!(warnings(&set).is_empty(), "{:?}", set.warnings());
    assert_eq!(amounts["explicit/textures"], 400_000);
    assert_eq!((amounts["explicit/sounds"], amounts["explicit/parts"]), (400_000, 7000));
    // The block of the hash table: 2,048 slots of 17 bytes, and one group of control bytes more.
    let emptied = amounts["explicit/emptied"];
    assert!((34_800..35_000).contains(&emptied), "{emptied}");
    assert_eq!(amounts[BY_AMOUNT], -(400_000 + 210_000 + 25_000 + 7000 + emptied), "{amounts:#?}");

    let row = set.iter().find(|report| report.path == BY_AMOUNT).unwrap();
    let paths = format!(
        "`explicit/textures` (400000 bytes), `explicit/scratch/6` (60000 bytes), `explicit/scratch/5` (50000 \
         bytes), `explicit/scratch/4` (40000 bytes), `explicit/emptied` ({emptied} bytes), 5 more"
    );
    assert_eq!(
        row.description,
        format!(
            "Reporters computed these amounts and named no blocks, so that the blocks are still listed here \
             by crate: {paths}."
        )
    );

    // Blocks that were reported by amount are still listed.
    let (textures, _) = of_function(&amounts, UNCLASSIFIED, "count_textures");
    assert!((400_000..402_000).contains(&textures), "{amounts:#?}");
    let (scratch, _) = of_function(&amounts, UNCLASSIFIED, "forget_scratch");
    assert!((210_000..215_000).contains(&scratch), "{amounts:#?}");
    // Blocks of other reporters are not listed.
    assert!((500_000..510_000).contains(&amounts["explicit/zlib"]), "{amounts:#?}");
    assert!((80_000..80_100).contains(&amounts["explicit/cache/keys"]), "{amounts:#?}");
    for function in ["compress", "count_sounds"] {
        assert!(amounts.keys().all(|path| !path.contains(function)), "{amounts:#?}");
    }
    let rest = amounts["explicit/heap-unclassified/(rest)"];
    assert!((0..2 * FEW).contains(&rest), "{amounts:#?}");
}

#[test]
fn programs_that_name_all_blocks_have_no_row_of_amounts() {
    let amounts = report(|path| {
        succeed(command(victim("dark")).arg(path).env("DMD", "--stacks=full --quiet"));
    });
    assert!(!amounts.contains_key(BY_AMOUNT), "{amounts:#?}");
    assert!(amounts["explicit/memory-reporter/registry"] > 0);
}

#[test]
fn a_dump_has_claims_without_marks_only_where_blocks_are_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let mut victim = command(victim("amounts"));
    succeed(victim.arg("dump").arg(&file).env("DMD", "--stacks=full --quiet"));
    let dump = read_dump(&file);
    let claims = |path: &Value| (path["claimed"].as_u64().unwrap(), path["marked"].as_u64().unwrap());
    let mut by_amount = Vec::new();
    for path in dump["reportPaths"].as_array().unwrap() {
        let name = path["path"].as_str().unwrap();
        match claims(path) {
            (claimed, marked) if claimed == marked => {}
            (claimed, 0) => by_amount.push((name, claimed)),
            (claimed, marked) => panic!("{name}: claimed {claimed}, marked {marked}"),
        }
    }
    by_amount.sort_unstable();
    let mut paths: Vec<&str> = by_amount.iter().map(|(name, _)| *name).collect();
    assert_eq!(by_amount.last(), Some(&("explicit/textures", 400_000)));
    assert_eq!(paths.remove(0), "explicit/emptied");
    assert_eq!(paths.remove(0), "explicit/parts");
    let scratch: Vec<String> = (1..=6).map(|index| format!("explicit/scratch/{index}")).collect();
    assert_eq!(paths[..6], scratch);
    assert_eq!(count(&dump, |block| block["req"] == 100_016 && block["reps"].is_array()), 5);
    let sounds =
        |block: &Value| block["req"] == 100_001 && block["reps"].as_array().is_some_and(|r| r.len() == 1);
    assert_eq!(count(&dump, sounds), 4);
    // A pointer that is not the start of a block is not a fault here.
    let faults = dump["reportFaultCounts"].as_object().unwrap().values();
    assert_eq!(faults.filter_map(Value::as_u64).sum::<u64>(), 0, "{}", dump["reportFaults"]);
}

/// Blocks with a tag are reported, each block once: of a declared `dmd::Dmd`, and of an allocator that the program
/// contains.
#[test]
fn blocks_with_a_tag_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.json");
    for (name, is_preloaded) in
        [("tagged", false), ("tagged", true), ("tagged_jemalloc", true), ("tagged_mimalloc", true)]
    {
        let mut options = "--stacks=full --quiet".to_owned();
        if name != "tagged" {
            options.push_str(" --dump-at-exit --output=");
            options.push_str(dump.to_str().unwrap());
        }
        let amounts = report(|file| {
            let command = if is_preloaded {
                &mut preloaded(victim(name), &options)
            } else {
                &mut command(victim(name))
            };
            succeed(command.env("DMD", &options).arg(file).arg(&dump));
        });
        let tagged = amounts["explicit/library"];
        assert!((1000 * 300..1000 * 330).contains(&tagged), "{name}: {tagged}");
        assert!((1_000_000..1_050_000).contains(&amounts["explicit/pages"]), "{name}: {amounts:?}");
        assert!(amounts.keys().all(|path| !path.starts_with(TWICE)), "{amounts:?}");
        let (unreported, _) = of_function(&amounts, UNCLASSIFIED, &format!("{name}::work::forget"));
        assert!((1000 * 500..1000 * 520).contains(&unreported), "{amounts:?}");

        let dump = read_dump(&dump);
        let reports =
            |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
        // A block with a tag has a multiple of 8 bytes.
        assert_eq!(count(&dump, |block| block["req"] == 304 && reports(block) == 1), 1000);
        assert_eq!(count(&dump, |block| block["req"] == 500 && reports(block) == 0), 1000);
        assert_eq!(count(&dump, |block| block["req"] == 10_000 && reports(block) == 1), 100);
        assert_eq!(count(&dump, |block| reports(block) > 1), 0);
        let path = dump["reportPaths"].as_array().unwrap().iter().find(|p| p["path"] == "explicit/library");
        let path = path.unwrap();
        assert_eq!(path["claimed"], path["marked"]);
    }
}
