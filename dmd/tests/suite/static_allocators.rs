//! Allocators that a program links statically, without the wrapper. The program counts its own calls.

use std::path::Path;

use serde_json::Value;

use crate::recordings::replay::Recording;
use crate::support::{c_program, compile, count, preloaded, read_dump, succeed, victim};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn requested(dump: &Value) -> u64 {
    let blocks = dump["blockList"].as_array().unwrap();
    blocks.iter().map(|block| number(&block["req"]) * block["num"].as_u64().unwrap_or(1)).sum()
}

/// Checks that the library records every call of the program's allocator, and no other call.
fn check(program: impl AsRef<Path>) {
    let program = program.as_ref();
    let folder = tempfile::tempdir().unwrap();
    let files = ["first.json", "second.json"].map(|name| folder.path().join(name));
    let options = "--mode=live --stacks=full --quiet";
    let output = succeed(preloaded(program, options).args(&files));
    let counted = String::from_utf8(output.stdout).unwrap();
    let [first, second] = files.map(|file| read_dump(&file));
    let work = |of: &dyn Fn(&Value) -> u64| of(&second) - of(&first);
    let statistics = |key: &str| work(&|dump| number(&dump["statistics"][key]));
    let events = ["allocations", "frees", "reallocations"].map(statistics);
    let counted: Vec<u64> = counted.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [mut allocations, mut frees, mut reallocations, bytes] = counted[..] else { panic!("{counted:?}") };
    // The crate has no `realloc`: Rust allocates, copies and frees.
    if program.ends_with("rpmalloc") {
        (allocations, frees, reallocations) = (allocations + reallocations, frees + reallocations, 0);
    }
    let counted = ([allocations, frees, reallocations], bytes);
    let recorded = (events, work(&requested));
    assert_eq!(recorded, counted, "{}", program.display());
    assert_eq!(second["dropped"]["frees"], Value::Null, "{}", program.display());
    let blocks_of = |bytes: u64| count(&second, |block| block["req"] == bytes && block["alloc"].is_string());
    assert_eq!((blocks_of(123), blocks_of(54_321), blocks_of(7_000), blocks_of(512)), (1200, 4, 4, 160));
}

#[test]
fn mimalloc() {
    check(victim("linked_mimalloc"));
}

#[test]
fn jemalloc() {
    check(victim("linked_jemalloc"));
}

#[test]
fn an_allocator_written_in_rust() {
    check(victim("linked_mapped"));
}

/// The dumps of `linked/stories.rs`: of the first process, of its child, and of the program that it starts. Each
/// dump agrees with the recording, if there is one.
fn stories(name: &str, options: &str) -> [Value; 3] {
    let folder = tempfile::tempdir().unwrap();
    let options = format!("{options} --stacks=full --quiet --dump-at-exit --output=d-%p.json");
    let mut command = preloaded(victim(name), &options);
    succeed(command.arg("stories").current_dir(folder.path()));
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let dumps = names.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut dumps: Vec<(u64, Value)> = dumps
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let recording = folder.path().join(format!("r-{}.dmdrec", &name[2..]));
            if recording.exists() {
                let state = Recording::read(recording).replay();
                assert_eq!(state.faults, 0);
                for bytes in SIZES {
                    let live = state.blocks.values().filter(|block| block.requested == bytes).count();
                    assert_eq!(live as u64, has(&read_dump(&path), bytes), "{name}: {bytes}");
                }
            }
            let dump = read_dump(&path);
            let order = if has(&dump, 3003) > 0 { 2 } else { u64::from(has(&dump, 3002) > 0) };
            (order, dump)
        })
        .collect();
    dumps.sort_by_key(|(order, _)| *order);
    let dumps: Vec<Value> = dumps.into_iter().map(|(_, dump)| dump).collect();
    dumps.try_into().unwrap()
}

/// The sizes of the blocks that live at the end.
const SIZES: [u64; 5] = [3001, 3002, 3003, 3004, 104];

/// The number of blocks of this size.
fn has(dump: &Value, bytes: u64) -> u64 {
    count(dump, |block| block["req"] == bytes)
}

/// Threads, `fork`, `exec`, the peak, recordings and reporters.
#[test]
fn all_views_have_the_blocks() {
    for name in ["linked_jemalloc", "linked_mimalloc"] {
        stories(name, "--mode=live --record=r-%p.dmdrec");
        let [first, child, other] = stories(name, "");
        let sizes = |dump: &Value| SIZES.map(|bytes| has(dump, bytes));
        assert_eq!(sizes(&first), [30, 0, 0, 150, 100_000], "{name}");
        assert_eq!(sizes(&child), [20, 5, 0, 150, 0], "{name}");
        assert_eq!(sizes(&other), [0, 0, 7, 0, 0], "{name}");
        // At the peak, the 500 blocks were live, which are not live at the end.
        assert_eq!(has(&child, 30_005), 0, "{name}");
        let at_peak = child["peak"]["bytes"].as_u64().unwrap();
        assert!((500 * 30_005..600 * 30_005).contains(&at_peak), "{name}: {at_peak}");
        for dump in [&first, &child] {
            let is_marked = |block: &Value| block["reps"].as_array().is_some_and(|reps| reps.len() == 1);
            assert_eq!(count(dump, |block| block["req"] == 3007 && is_marked(block)), 10, "{name}");
            assert_eq!(dump["dropped"]["frees"], Value::Null, "{name}");
        }
    }
}

/// The chance of a block of 104 bytes is 2.5 %, so 2,507 of 100,000 blocks are expected, with a deviation of 50.
#[test]
fn samples_have_the_blocks() {
    for name in ["linked_jemalloc", "linked_mimalloc"] {
        let [first, _, other] = stories(name, "--sample-bytes=4096 --seed=1");
        let sampled = has(&first, 104);
        assert!((2200..2800).contains(&sampled), "{name}: {sampled}");
        assert!(has(&other, 3003) <= 7, "{name}");
        assert_eq!(first["dropped"]["frees"], Value::Null, "{name}");
    }
}

/// The folder `$LINKED_PROGRAMS` has the programs of `tests/linked/check`: one folder for each way to build them.
#[test]
fn programs_of_the_matrix() {
    let Some(folder) = std::env::var_os("LINKED_PROGRAMS") else { return };
    let mut checked = 0;
    for variant in std::fs::read_dir(folder).unwrap() {
        let variant = variant.unwrap().path();
        for allocator in ["jemalloc", "mimalloc", "rpmalloc", "snmalloc", "system"] {
            let program = variant.join(allocator);
            if program.is_file() {
                check(program);
                checked += 1;
            }
        }
    }
    assert!(checked >= 40, "{checked} programs");
}

/// The program's `malloc` is the `malloc` of its libraries, too: the C library copies a text.
#[test]
fn an_allocator_in_place_of_malloc() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-DJEMALLOC", "-fno-builtin"];
    let program = compile(folder.path(), "cc", "own_malloc.c", "own_malloc", &flags);
    let options = "--mode=live --stacks=full --dump-at-exit --output=own.json";
    let output = succeed(preloaded(program, options).current_dir(folder.path()));
    assert_eq!(output.stdout, b"mine\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("its own malloc"), "{said}");
    let dump = read_dump(folder.path().join("own.json"));
    let sizes = [201, 25, 100].map(|bytes| has(&dump, bytes));
    assert_eq!(sizes, [1, 1, 0], "{}", dump["allocators"]);
    assert_eq!(dump["dropped"]["frees"], Value::Null);
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
