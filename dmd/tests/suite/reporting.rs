//! A program that only links `memory-reporter`, under `libdmd.so`.

use std::fs;
use std::path::Path;
use std::process::Command;

use dmd::analyze::Suggestions;
use dmd::analyze::symbolize::SymbolOptions;
use memory_reporter::{ReportSet, file};
use serde_json::Value;

use crate::support::{build_folder, command, count, frames, libdmd, preloaded, read_dump, succeed, victim};

#[test]
fn its_reporters_run_and_mark() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    succeed(preloaded(victim("reporting"), "--stacks=full --quiet").arg(&file));
    check(&read_dump(&file));
}

#[test]
fn its_reporters_run_at_the_end_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--stacks=full --quiet --dump-at-exit --output=end.json";
    let output = succeed(preloaded(victim("reporting"), options).current_dir(folder.path()));
    assert!(output.stderr.is_empty(), "{output:?}");
    let file = folder.path().join("end.json");
    check(&read_dump(&file));
    // The first collection of a process also reports the list of reporters.
    let mut dump = dmd::analyze::read(&file).unwrap();
    dump.symbolize(&SymbolOptions::new());
    let unreported = Suggestions::new(dump, usize::MAX).unwrap().suggestions;
    let mut sites = unreported.iter().flat_map(|unreported| &unreported.sites);
    let of_registry = sites.find(|site| site.function.contains("registry"));
    assert!(of_registry.is_none(), "{of_registry:?}");
}

fn check(dump: &Value) {
    assert_eq!(dump["invocation"]["mode"], "dark-matter");

    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    assert_eq!(count(dump, |block| block["req"] == 1000 && reports(block) == 1), 10);
    assert_eq!(count(dump, |block| block["req"] == 5000 && reports(block) == 0), 1);
    assert_eq!(count(dump, |block| reports(block) == 2), 0, "no block is reported twice");
    // The block of the hash table: its reporter only has a pointer into the block.
    let table = |block: &Value| block["req"].as_u64().unwrap() > 16 * 1024 && reports(block) == 1;
    assert_eq!(count(dump, table), 1);

    let paths = dump["reportPaths"].as_array().unwrap();
    let path = |name: &str| paths.iter().find(|path| path["path"] == name).unwrap();
    let names = path("explicit/names");
    assert_eq!(names["claimed"], names["marked"]);
    assert_eq!(path("explicit/table")["claimed"], path("explicit/table")["marked"]);
    assert_eq!(path("explicit/guess")["claimed"], 12_345);
    assert_eq!(path("explicit/guess")["marked"], 0);
    let block = dump["blockList"].as_array().unwrap().iter().find(|block| block["req"] == 1000).unwrap();
    let place = block["repPaths"][0].as_u64().unwrap() as usize;
    assert_eq!(paths[place]["path"], "explicit/names");

    let faults: u64 = dump["reportFaultCounts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(faults, 0, "{}", dump["reportFaults"]);

    // The innermost frame belongs to malloc itself.
    let stack = frames(dump, &block["alloc"]);
    assert!(stack[0].starts_with(&format!("#00: ???[{} +0x", libdmd().display())), "{stack:?}");
    assert!(stack[1].contains("examples/reporting"), "{stack:?}");
    assert!(stack.len() > 3 && stack.len() <= 24, "{stack:?}");
}

#[test]
fn the_wrapper_may_be_the_declared_allocator() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let off = succeed(command(victim("declared")).arg(&file));
    assert_eq!(off.stdout, b"off\n");
    let options = "--stacks=full --quiet";
    for output in [
        succeed(command(victim("declared")).arg(&file).env("DMD", options)),
        succeed(preloaded(victim("declared"), options).arg(&file)),
    ] {
        assert_eq!(output.stdout, b"on\n");
        let dump = read_dump(&file);
        let reports =
            |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
        assert_eq!(count(&dump, |block| block["req"] == 10_000 && reports(block) == 1), 100);
        assert_eq!(count(&dump, |block| reports(block) == 2), 0);
    }
}

/// The program does not depend on DMD, and cargo builds it outside of this workspace.
#[test]
fn a_program_built_alone_is_asked_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = format!(
        "[package]\nname = \"alone\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nmemory-reporter = {{ path = \"{}\" }}\n\n[workspace]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n",
        root.join("reporter").display()
    );
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    // Use the versions that are already downloaded. With the profile and the folder of this build, many of them are
    // already built.
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    let source = "use std::sync::Mutex;\n\
         static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());\n\
         memory_reporter::define_reporter!(\"explicit/pages\", Heap, &PAGES, \"Memory used by pages.\");\n\
         fn main() { *PAGES.lock().unwrap() = vec![vec![0; 7777]; 50]; std::hint::black_box(Box::leak(Box::new([1_u8; 3333]))); }\n";
    fs::write(folder.path().join("src/main.rs"), source).unwrap();
    let mut cargo = command(env!("CARGO"));
    let build = build_folder();
    let target = build.parent().unwrap();
    cargo.args(["build", "--quiet", "--offline", "--target-dir"]).arg(target);
    succeed(cargo.current_dir(folder.path()));
    let file = folder.path().join("dump.json");
    let options = format!("--stacks=full --quiet --dump-at-exit --output={}", file.display());
    succeed(&mut preloaded(target.join("debug/alone"), &options));
    let dump = read_dump(&file);
    let reported = |block: &Value| block.get("reps").is_some();
    assert_eq!(count(&dump, |block| block["req"] == 7777 && reported(block)), 50);
    assert_eq!(count(&dump, |block| block["req"] == 3333 && !reported(block)), 1);
}

fn warnings_and_dump(victim: &str, command: &mut Command) -> (ReportSet, Value) {
    let folder = tempfile::tempdir().unwrap();
    let [report, dump] = ["report.json", "dump.json"].map(|name| folder.path().join(name));
    let output = succeed(command.args([&report, &dump]));
    assert!(output.stderr.is_empty(), "{victim}: {output:?}");
    (file::read(&report).unwrap(), read_dump(&dump))
}

/// A reporter passes pointers without a block. An allocator that gets such a pointer would read memory that it does not
/// own.
#[test]
fn pointers_without_a_block_count_nothing_and_are_named() {
    let options = "--stacks=full --quiet";
    for command in [command(victim("faults")).env("DMD", options), &mut preloaded(victim("faults"), options)]
    {
        let (set, dump) = warnings_and_dump("faults", command);
        let amounts: Vec<(&str, i64)> = set
            .iter()
            .filter(|report| report.path.starts_with("explicit/faulty/"))
            .map(|report| (report.path, report.amount))
            .collect();
        let good = amounts[0].1;
        assert!((1 << 20..1 << 21).contains(&good), "{good}");
        assert_eq!(
            amounts,
            [
                ("explicit/faulty/good", good),
                ("explicit/faulty/interior", 0),
                ("explicit/faulty/interior", 0),
                ("explicit/faulty/static", 0),
                ("explicit/faulty/freed", 0),
            ]
        );
        let warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
        let is_inside = "faulty: `explicit/faulty/interior`: the pointer to `u8` is inside a heap block, not at its \
                         start (interior), and counts as 0 bytes";
        assert_eq!(
            warnings,
            [
                is_inside,
                is_inside,
                "faulty: `explicit/faulty/static`: the pointer to `u8` is outside of all blocks that DMD records \
                 (not-heap), and counts as 0 bytes",
                "faulty: `explicit/faulty/freed`: the pointer to `u8` points to a freed heap block (freed), and \
                 counts as 0 bytes",
            ]
        );
        let counts = &dump["reportFaultCounts"];
        assert_eq!(counts, &serde_json::json!({"not-heap": 1, "interior": 2, "freed": 1, "freed-since": 0}));
        let path = |fault: &Value| &dump["reportPaths"][fault["path"].as_u64().unwrap() as usize]["path"];
        let faults: Vec<_> = dump["reportFaults"].as_array().unwrap().iter().map(path).collect();
        assert_eq!(faults[2], "explicit/faulty/static");
    }
}

/// DMD cannot find out which pointers are blocks of an allocator that it does not see.
#[test]
fn blocks_of_an_allocator_that_dmd_does_not_see_are_no_faults() {
    let options = "--stacks=full --quiet";
    let (set, dump) =
        warnings_and_dump("foreign_allocator", &mut preloaded(victim("foreign_allocator"), options));
    let pages = set.iter().find(|report| report.path == "explicit/pages").unwrap();
    assert!(pages.amount >= 1_000_000, "{}", pages.amount);
    assert!(set.warnings().iter().all(|warning| warning.subject != "explicit/pages"), "{:?}", set.warnings());
    let counts = &dump["reportFaultCounts"];
    assert!(counts.as_object().unwrap().values().all(|count| count == 0), "{counts}");
}
