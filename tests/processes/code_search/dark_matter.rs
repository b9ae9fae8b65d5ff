//! Under DMD, the top unreported record is the memory that the example does not report, and the twice-reported records
//! are the memory that it reports twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use dmd::analyze::{Analysis, AnalyzeOptions, Dump, SuggestedSite, Suggestions, read};
use dmd::symbolize::SymbolOptions;

/// Runs the example with a time limit, and returns the dump that it writes.
fn run(folder: &Path, arguments: &[&str]) -> PathBuf {
    let file = folder.join(format!("dump{}.json.gz", arguments.concat()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let megabytes = if std::env::var_os("THOROUGH").is_some() { "2" } else { "1" };
    let output = Command::new("timeout")
        .args(["-s", "KILL", "240"])
        .arg(super::program())
        .arg(root)
        .args(["--max-megabytes", megabytes, "--dmd"])
        .arg(&file)
        .args(arguments)
        .env("DMD", "--mode=dark-matter --stacks=full --max-frames=64 --quiet")
        .env_remove("LD_PRELOAD")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    file
}

fn dump(file: &Path) -> Dump {
    let mut dump = read(file).unwrap();
    dump.symbolize(&SymbolOptions::new());
    dump
}

/// The text of the first record of this kind.
fn top(text: &str, kind: &str) -> Option<String> {
    let record = text.split(&format!("\n{kind} {{\n")).nth(1)?;
    Some(record.split("\n}\n").next().unwrap().to_owned())
}

fn text(dump: Dump) -> String {
    Analysis::new(dump, &AnalyzeOptions::new().max_frames(64).ignore_alloc_fns(true)).text(&[]).to_string()
}

/// Whether a stack contains the method that answers a query. In a release build the method may be inlined, and debug
/// information with only lines lacks its type.
fn answers(record: &str) -> bool {
    ["code_search::engine::Engine::answer", "code_search::engine::answer"]
        .iter()
        .any(|name| record.contains(name))
}

#[test]
fn the_query_cache_is_unreported_and_suggested_until_it_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let without = run(folder.path(), &[]);
    let with = run(folder.path(), &["--report-cache"]);
    the_query_cache_is_the_top_unreported_record(&without, &with);
    suggestions_name_the_query_cache_s_types_and_file(&without, &with);
}

fn the_query_cache_is_the_top_unreported_record(without: &Path, with: &Path) {
    let without = text(dump(without));
    let record = top(&without, "Unreported").unwrap();
    assert!(answers(&record), "{record}");
    assert!(top(&without, "Twice-reported").is_none(), "{without}");

    let with = text(dump(with));
    let record = top(&with, "Unreported").unwrap();
    assert!(!answers(&record), "{record}");
    let record = top(&with, "Once-reported").unwrap();
    assert!(record.contains("code_search::"), "{record}");
}

#[test]
fn the_planted_double_report_is_twice_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(dump(&run(folder.path(), &["--report-twice", "--report-cache"])));
    let record = top(&text, "Twice-reported").unwrap();
    for part in [
        "code_search::sources::read",
        "Reported at {",
        "Reported again at {",
        "MemoryReporter for code_search::engine::Engine>",
    ] {
        assert!(record.contains(part), "{part} is not in {record}");
    }
    // With optimization, the last call of `DocumentsAgain`'s function is a jump, so stacks do not contain the function.
    if cfg!(debug_assertions) {
        let part = "<code_search::reporters::DocumentsAgain as memory_reporter";
        assert!(record.contains(part), "{part} is not in {record}");
    }
}

fn suggestions_name_the_query_cache_s_types_and_file(without: &Path, with: &Path) {
    let suggestions = Suggestions::new(dump(without), 10).unwrap();
    let text = suggestions.to_string();
    let all: Vec<&SuggestedSite> = suggestions.suggestions.iter().flat_map(|one| &one.sites).collect();
    let largest = all.iter().max_by_key(|site| site.sums.usable()).unwrap();
    assert_eq!(largest.module, "code_search", "{text}");
    assert!(largest.function.ends_with("::snippet") && !largest.dependency, "{text}");
    let of_cache: Vec<&SuggestedSite> =
        all.iter().copied().filter(|one| one.function.starts_with("code_search::query_cache::")).collect();
    assert!(!of_cache.is_empty(), "{text}");
    assert!(text.contains("\"explicit/query-cache\""), "{text}");
    let debug_information =
        if cfg!(debug_assertions) { "CARGO_PROFILE_DEV_DEBUG" } else { "CARGO_PROFILE_RELEASE_DEBUG" };
    if std::env::var_os(debug_information).is_some_and(|value| value == "0") {
        return;
    }
    // These names need debug information, at least of lines.
    for name in ["Vec<code_search::query_cache::Hit>", "Arc<code_search::query_cache::Answer>"] {
        let found = all.iter().find(|one| one.type_name.as_deref() == Some(name));
        assert!(found.is_some_and(|one| one.module == "code_search"), "{name}: {text}");
    }
    let file = "examples/code_search/query_cache.rs:";
    assert!(of_cache.iter().all(|one| one.place.contains(file)), "{text}");
    let table = of_cache.iter().filter_map(|one| one.type_name.as_deref());
    let map = |name: &str| name.contains("code_search::query_cache::Query, ");
    assert!(table.into_iter().any(map), "{text}");

    // If the example reports the cache, DMD makes no suggestion about it.
    let with = Suggestions::new(dump(with), 10).unwrap();
    let text = with.to_string();
    let of_cache = with.suggestions.iter().flat_map(|one| &one.sites).filter(|one| one.place.contains(file));
    let left: i128 = of_cache.map(|one| one.sums.usable()).sum();
    assert!(left * 100 < suggestions.unreported.usable(), "{text}");
}
