//! Allocators that a program links statically, without the wrapper. The program counts its own calls.

use serde_json::Value;

use crate::support::{c_program, compile, count, preloaded, read_dump, succeed, victim};

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

/// DMD hooks a library with its own allocator when the program first looks up one of the library's functions. The
/// library stays loaded.
#[test]
fn a_library_that_is_loaded_later() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-shared", "-fPIC", "-fvisibility=hidden"];
    compile(folder.path(), "cc", "own_allocator.c", "own_allocator.so", &flags);
    let program = c_program(folder.path(), "loads_allocator");
    let file = folder.path().join("loaded.json");
    let options = format!("--mode=live --stacks=full --dump-at-exit --quiet --output={}", file.display());
    succeed(preloaded(program, &options).arg(folder.path().join("own_allocator.so")));
    let dump = read_dump(&file);
    assert_eq!(count(&dump, |block| block["req"] == 777), 6, "{dump}");
    let allocators = dump["allocators"].as_array().unwrap();
    assert_eq!(allocators.len(), 1, "{allocators:?}");
    assert_eq!(allocators[0]["place"], "own_allocator.so");
    assert_eq!((&allocators[0]["functions"], &allocators[0]["references"]), (&2.into(), &3.into()));
    assert_eq!(dump["dropped"]["frees"], Value::Null);
}
