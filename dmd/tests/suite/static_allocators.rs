//! Allocators that a program links statically, without the wrapper. The program counts its own calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recordings::replay::Recording;
use crate::support::{build_folder, c_program, compile, count, preloaded, read_dump, succeed, victim};

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

/// The folder of mimalloc's sources, which the build of its crate has written down.
fn mimalloc_sources() -> PathBuf {
    let builds = std::fs::read_dir(build_folder().join("build")).unwrap();
    let outputs = builds.map(|build| build.unwrap().path().join("output"));
    let include =
        outputs.filter(|path| path.to_string_lossy().contains("/libmimalloc-sys-")).find_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            let include =
                PathBuf::from(text.lines().find_map(|line| line.strip_prefix("cargo:INCLUDE_DIR="))?);
            include.is_dir().then_some(include)
        });
    include.expect("the crate mimalloc is built").parent().unwrap().to_owned()
}

/// Compiles mimalloc so that it replaces `malloc` and the operators of C++.
fn mimalloc_in_place_of_malloc(folder: &Path, language: &str) -> String {
    let sources = mimalloc_sources();
    let object = folder.join(format!("mimalloc-{language}.o"));
    let status = Command::new("cc")
        .args(["-x", language, "-c", "-O2", "-w", "-fPIC", "-DMI_MALLOC_OVERRIDE", "-DMI_DEBUG=0"])
        .args(["-fno-builtin-malloc", "-I"])
        .arg(sources.join("include"))
        .arg(sources.join("src/static.c"))
        .arg("-o")
        .arg(&object)
        .status();
    assert!(status.unwrap().success());
    object.to_str().unwrap().to_owned()
}

/// Programs in C and C++ in which mimalloc replaces `malloc`. mimalloc's functions for the names of the C library and
/// of C++ contain copies of its own.
#[test]
fn functions_in_place_of_the_c_librarys_and_operators() {
    let folder = tempfile::tempdir().unwrap();
    let in_c = mimalloc_in_place_of_malloc(folder.path(), "c");
    let in_cpp = mimalloc_in_place_of_malloc(folder.path(), "c++");
    // Each size from 1001 to 1021 except 1019 has one block. The operators add 2001 to 2008. The block of the exception
    // is freed, too.
    let c_sizes = || (1001..=1018).chain(1020..=1021);
    for (name, words, mimalloc, frees) in [
        ("c", &["cc"][..], &in_c, 2),
        ("operators", &["g++", "-x", "c++", "-std=c++17"], &in_c, 14),
        ("throwing", &["g++", "-x", "c++", "-std=c++17", "-DTHROWS"], &in_cpp, 15),
    ] {
        let program = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture/wrappers.c");
        let mut compiler = Command::new(words[0]);
        compiler.args(&words[1..]).args(["-w", "-O1", "-g", "-fno-builtin", "-o"]).arg(&program).arg(source);
        assert!(compiler.args(["-x", "none", mimalloc, "-pthread"]).status().unwrap().success());
        let options = format!("--mode=live --stacks=full --quiet --dump-at-exit --output={name}.json");
        let output = succeed(preloaded(program, &options).current_dir(folder.path()));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, if name == "throwing" { "caught 1\ndone\n" } else { "done\n" });
        let dump = read_dump(folder.path().join(format!("{name}.json")));
        assert_eq!(dump["allocators"][0]["obstacle"], Value::Null, "{name}");
        let expected = c_sizes().chain((2001..=2008).filter(|_| name != "c"));
        expected.for_each(|bytes| assert_eq!(has(&dump, bytes), 1, "{name}: {bytes}"));
        // The path without room, and the C library's room for the output.
        let others = count(&dump, |block| number(&block["req"]) < 1001 || number(&block["req"]) > 2008);
        assert_eq!((others, has(&dump, 10)), (2, 1), "{name}");
        // The program frees one block of 10 bytes by each function, and the other blocks of 10 bytes move.
        let ended = |key: &str| number(&dump["statistics"][key]);
        assert_eq!((ended("frees"), ended("reallocations")), (frees, 5), "{name}");
        assert_eq!(dump["dropped"]["frees"], Value::Null, "{name}");
    }
}

/// The program's own `strdup` hands out texts that are not blocks of the allocator. DMD records the allocator's blocks
/// inside.
#[test]
fn a_programs_own_functions_beside_the_allocators() {
    let folder = tempfile::tempdir().unwrap();
    let mimalloc = mimalloc_in_place_of_malloc(folder.path(), "c");
    // mimalloc has a strdup, too. The linker takes the first.
    let flags = ["-O1", "-fno-builtin", &mimalloc, "-pthread", "-Wl,--allow-multiple-definition"];
    let program = compile(folder.path(), "cc", "own_strdup.c", "own_strdup", &flags);
    let options = "--mode=live --stacks=full --quiet --dump-at-exit --output=own.json";
    let output = succeed(preloaded(program, options).current_dir(folder.path()));
    assert_eq!(output.stdout, b"done\n");
    let dump = read_dump(folder.path().join("own.json"));
    assert_eq!(dump["allocators"][0]["obstacle"], Value::Null);
    assert_eq!((has(&dump, 2001), has(&dump, 1001), has(&dump, 1017)), (0, 0, 1), "{dump}");
}

/// The compiler has inlined the allocator's functions, so no hook can see all calls.
#[test]
fn a_program_in_one_piece_with_its_allocator_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sources = mimalloc_sources();
    let include = |name| format!("-I{}", sources.join(name).display());
    let flags = ["-O2", "-DMI_DEBUG=0", &include("include"), &include("src")];
    let program = compile(folder.path(), "cc", "one_piece.c", "one_piece", &flags);
    let options = "--mode=live --stacks=full --dump-at-exit --output=one.json";
    let output = succeed(preloaded(program, options).current_dir(folder.path()));
    assert_eq!(output.stdout, b"done\n");
    let dump = read_dump(folder.path().join("one.json"));
    let obstacle = dump["allocators"][0]["obstacle"].as_str().unwrap();
    assert!(obstacle.contains("inlined into their callers"), "{obstacle}");
    assert_eq!(has(&dump, 100), 0);
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

/// Threads load and unload libraries with allocators of their own while other threads allocate. DMD hooks these
/// libraries through words, and keeps them loaded.
#[test]
fn libraries_that_threads_load_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-shared", "-fPIC", "-fvisibility=hidden"];
    let names = ["a.so", "b.so", "c.so", "d.so"];
    names.iter().for_each(|name| drop(compile(folder.path(), "cc", "plugin_allocator.c", name, &flags)));
    let program = c_program(folder.path(), "loads_under_load");
    for round in 0..3 {
        let file = folder.path().join("under_load.json");
        let options = format!("--mode=live --stacks=full --dump-at-exit --quiet --output={}", file.display());
        succeed(preloaded(&program, &options).args(names.map(|name| folder.path().join(name))));
        let dump = read_dump(&file);
        // A library's first calls may come before its hooks.
        let early = has(&dump, 777);
        assert!((1..=4 * 30).contains(&early), "{round}: {early}");
        assert_eq!(has(&dump, 888), 4 * 30, "{round}: {}", dump["allocators"]);
        assert_eq!(dump["allocators"].as_array().unwrap().len(), 4, "{round}: {}", dump["allocators"]);
        assert_eq!(dump["dropped"]["frees"], Value::Null, "{round}");
    }
}
