//! Allocators that a program links statically, without the wrapper. The program counts its own calls.

use serde_json::Value;

use crate::support::{count, preloaded, read_dump, succeed, victim};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn requested(dump: &Value) -> u64 {
    let blocks = dump["blockList"].as_array().unwrap();
    blocks.iter().map(|block| number(&block["req"]) * block["num"].as_u64().unwrap_or(1)).sum()
}

/// Checks that the library records every call of the program's allocator, and no other call.
fn check(program: &str) {
    let folder = tempfile::tempdir().unwrap();
    let files = ["first.json", "second.json"].map(|name| folder.path().join(name));
    let options = "--mode=live --stacks=full --quiet";
    let output = succeed(preloaded(victim(program), options).args(&files));
    let counted = String::from_utf8(output.stdout).unwrap();
    let [first, second] = files.map(|file| read_dump(&file));
    let work = |of: &dyn Fn(&Value) -> u64| of(&second) - of(&first);
    let statistics = |key: &str| work(&|dump| number(&dump["statistics"][key]));
    let recorded = format!(
        "{} {} {} {}\n",
        statistics("allocations"),
        statistics("frees"),
        statistics("reallocations"),
        work(&requested),
    );
    assert_eq!(recorded, counted, "{program}");
    let blocks_of = |bytes: u64| count(&second, |block| block["req"] == bytes && block["alloc"].is_string());
    assert_eq!((blocks_of(123), blocks_of(54_321), blocks_of(7_000), blocks_of(512)), (1200, 4, 4, 160));
}

#[test]
fn mimalloc() {
    check("linked_mimalloc");
}

#[test]
fn jemalloc() {
    check("linked_jemalloc");
}

#[test]
fn an_allocator_written_in_rust() {
    check("linked_mapped");
}
