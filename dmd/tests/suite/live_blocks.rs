//! The dump at the end of a difficult program contains exactly the program's live blocks, in every mode.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use dmd::analyze::{Analysis, AnalyzeOptions};
use dmd::symbolize::SymbolOptions;
use serde_json::Value;

use crate::support::{
    c_program, command, compile, count, frames, has_linked_allocator, libdmd, number_of, preloaded,
    read_dump, run, succeed, without_reasons,
};

const ALL_OPTIONS: [&str; 6] = [
    "--mode=dark-matter",
    "--mode=dark-matter --stacks=full",
    "--mode=live --stacks=full",
    "--mode=cumulative --stacks=full",
    "--mode=scan",
    "--mode=live --max-frames=256 --stacks=full",
];

/// The dumps of a program and of the programs that it starts. The program must end in the same way as without the
/// library.
fn dumps(program: &Path, arguments: &[&Path], options: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(command(program).args(arguments).current_dir(folder.path()));
    let options = format!("{options} --quiet --dump-at-exit --output=dump-%p.json");
    let output = run(preloaded(program, &options).args(arguments).current_dir(folder.path()));
    assert_eq!(output.status, plain.status, "{options}: {output:?}");
    assert_eq!(output.stdout, plain.stdout, "{options}");
    let stderr = if has_linked_allocator() { without_reasons(&output.stderr) } else { output.stderr };
    assert_eq!(stderr, plain.stderr, "{options}");
    let mut dumps = Vec::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let dump = read_dump(&path);
        assert_eq!(dump["dropped"]["blocks"], 0, "{options}");
        dumps.push(dump);
    }
    dumps
}

/// The number of blocks of each requested size in a range.
fn sizes(dump: &Value, range: core::ops::Range<u64>) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    for block in dump["blockList"].as_array().unwrap() {
        let requested = block["req"].as_u64().unwrap();
        if range.contains(&requested) {
            *sizes.entry(requested).or_default() += number_of(block);
        }
    }
    sizes
}

/// Adds freed blocks, which the cumulative mode also counts.
fn with_freed(mut sizes: BTreeMap<u64, u64>, options: &str, freed: &[(u64, u64)]) -> BTreeMap<u64, u64> {
    if options.contains("cumulative") {
        for (size, number) in freed {
            *sizes.entry(*size).or_default() += number;
        }
    }
    sizes
}

#[test]
fn of_a_program_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "live");
    for options in ALL_OPTIONS {
        let expected = BTreeMap::from([
            (5001, 1), // before any constructor
            (5002, 3), // in a constructor
            (5003, 1), // in a destructor
            (5004, 1), // in an exit handler
            (5005, 5), // at the end of a thread
            (5006, 5), // in a thread with the smallest stack
            (5007, 4), // in the handler of a signal, on a separate stack
            (5008, 6), // in a coroutine
            (5009, 2), // before a jump out of the function
            (5010, 7), // of 17; another thread frees the others
            (5011, 2), // aligned to a megabyte
            (5012, 1), // below 100,000 frames
            (5013, 8), // moved twice
            (5014, 1), // in a fork handler
            (5015, 1), // by the C library
        ]);
        let mut parents = 0;
        for dump in dumps(&program, &[], options) {
            let found = sizes(&dump, 5001..5020);
            let mut expected = with_freed(expected.clone(), options, &[(5010, 10), (5016, 1)]);
            if has_linked_allocator() {
                // The library hooks the program's allocator in a constructor.
                expected.remove(&5001);
            }
            if found.contains_key(&5017) {
                expected.insert(5017, 3);
            } else {
                parents += 1;
            }
            assert_eq!(found, expected, "{options}");
        }
        assert_eq!(parents, 1);
    }
}

#[test]
fn of_a_program_in_cpp() {
    if Command::new("c++").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "c++", "objects.cc", "objects", &["-std=c++17"]);
    for options in ALL_OPTIONS {
        let dumps = dumps(&program, &[], options);
        assert_eq!(dumps.len(), 1);
        let expected = BTreeMap::from([(6001, 3), (6003, 4), (6004, 1), (6144, 2)]);
        let expected = with_freed(expected, options, &[(6144, 1)]);
        let found = sizes(&dumps[0], 6001..6200).into_iter().filter(|(size, _)| expected.contains_key(size));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "{options}");
    }
}

#[test]
fn of_programs_that_start_others() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "starts");
    let dumps = dumps(&program, &[], "--mode=live --stacks=full");
    // The programs were started by vfork and posix_spawn, and by the shell of system and popen. Programs without an
    // environment write no dump.
    let leaves = dumps.iter().filter(|dump| sizes(dump, 7001..7002) == BTreeMap::from([(7001, 3)]));
    assert_eq!(leaves.count(), 4);
    let forks = dumps.iter().flat_map(|dump| sizes(dump, 7100..7150)).collect::<BTreeMap<_, _>>();
    assert_eq!(forks, (7100..7150).map(|size| (size, 1)).collect());
}

#[test]
fn of_programs_that_fork_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "raw_fork");
    for name in ["dump.json", "dump-%p.json"] {
        let written = tempfile::tempdir().unwrap();
        let options = format!("--quiet --dump-at-exit --output={name}");
        succeed(preloaded(&program, &options).current_dir(written.path()));
        let dumps = std::fs::read_dir(written.path()).unwrap().map(|entry| read_dump(entry.unwrap().path()));
        let mut found: Vec<_> = dumps.map(|dump| sizes(&dump, 9201..9204)).collect();
        found.sort();
        assert_eq!(found, [BTreeMap::from([(9201, 1), (9202, 1)]), BTreeMap::from([(9201, 1), (9203, 1)])]);
    }
}

/// No thread of the child releases the lock, so the library must not ask the loader for the list of libraries.
#[test]
fn of_a_child_that_was_forked_while_the_loader_s_list_was_locked() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "fork_loader");
    let dumps = dumps(&program, &[], "--mode=live --stacks=full");
    let child = dumps.iter().find(|dump| count(dump, |block| block["req"] == 9301) == 1).unwrap();
    let block = child["blockList"].as_array().unwrap().iter().find(|block| block["req"] == 9301).unwrap();
    let frames = frames(child, &block["alloc"]);
    assert!(frames[1].starts_with(&format!("#00: ???[{} +0x", program.display())), "{frames:#?}");
    // The kernel and the loader list the same modules.
    let modules = |dump: &Value| -> BTreeSet<(String, String)> {
        let text = |module: &Value, key: &str| module[key].as_str().unwrap().to_owned();
        let place = |module| ["bias", "start", "end"].map(|key| text(module, key)).join(" ");
        let modules = dump["modules"].as_array().unwrap().iter();
        modules.map(|module| (place(module), text(module, "buildId"))).collect()
    };
    let parent = dumps.iter().find(|dump| count(dump, |block| block["req"] == 9301) == 0).unwrap();
    assert_eq!(modules(child), modules(parent));
}

/// The heap is larger than 32 GiB.
#[test]
fn of_a_program_with_many_large_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "large");
    let file = folder.path().join("dump.json");
    let options = format!("--quiet --dump-at-exit --output={}", file.display());
    let output = succeed(&mut preloaded(&program, &options));
    let dump = read_dump(&file);
    let found = count(&dump, |block| block["req"] == 1 << 20);
    assert_eq!(output.stdout, format!("{found}\n").into_bytes());
    assert_eq!(dump["dropped"]["blocks"], 0);
    assert!(
        dump["measurements"]["liveBlockTable"].as_u64().unwrap() < 1000 * found,
        "{}",
        dump["measurements"]
    );
}

#[test]
fn of_programs_that_end_where_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "small_ends");
    for options in ALL_OPTIONS {
        let dumps = dumps(&program, &[], options);
        let ended = dumps.iter().filter(|dump| count(dump, |block| block["req"] == 8001) == 1).count();
        // The handler may interrupt the engine while it holds a lock. The compiler removes the C library's pairs of
        // `malloc` and `free`, so they are not interrupted.
        let fewest = if has_linked_allocator() { (5, 4) } else { (16, 15) };
        assert!((dumps.len(), ended) >= fewest && ended + 1 == dumps.len(), "{options}: {ended}");
    }
}

#[test]
fn of_a_program_that_writes_over_its_environment() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "title");
    // The program is either the first process, or another program starts it.
    for (program, arguments, number) in
        [(&*program, vec![], 1), (Path::new("/usr/bin/env"), vec![&*program], 1)]
    {
        let dumps = dumps(program, &arguments, "--mode=live");
        assert_eq!(dumps.len(), number);
        assert_eq!(count(&dumps[0], |block| block["req"] == 9001), 1);
    }
    let script = format!("'{}'; true", program.display());
    let folder = tempfile::tempdir().unwrap();
    let options = "--quiet --dump-at-exit --output=dump.json";
    let output = run(preloaded("/bin/sh", options).args(["-c", &script]).current_dir(folder.path()));
    assert!(output.status.success());
    let found = std::fs::read_dir(folder.path()).unwrap().map(|entry| read_dump(entry.unwrap().path()));
    assert_eq!(found.map(|dump| count(&dump, |block| block["req"] == 9001)).sum::<u64>(), 1);
}

#[test]
fn of_an_allocator_that_tells_no_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-shared", "-fPIC", "-fno-builtin"];
    let library = compile(folder.path(), "cc", "half.c", "libhalf.so", &flags);
    let rpath = format!("-Wl,-rpath,{}", folder.path().display());
    let flags = [library.to_str().unwrap(), &rpath, "-fno-builtin"];
    let program = compile(folder.path(), "cc", "halved.c", "halved", &flags);
    for options in ALL_OPTIONS {
        let dumps = dumps(&program, &[], options);
        assert_eq!(dumps.len(), 1);
        let expected = with_freed(BTreeMap::from([(9002, 500), (9003, 1)]), options, &[(9002, 500)]);
        assert_eq!(sizes(&dumps[0], 9002..9004), expected, "{options}");
        assert_eq!(count(&dumps[0], |block| block["req"] == 9002 && block.get("slop").is_some()), 0);
    }
}

/// The recorded sizes are the C library's sizes, even if the C library checks each block.
#[test]
fn as_large_as_the_c_library_says() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "sizes");
    let checks = "libc_malloc_debug.so.0";
    for (options, behind) in [("--stacks=full", ""), ("--stacks=partial", ""), ("--stacks=full", checks)] {
        let file = folder.path().join("dump.json");
        let mut command = preloaded(&program, &format!("--mode=live {options} --quiet"));
        if !behind.is_empty() {
            command.env("LD_PRELOAD", format!("{}:{behind}", libdmd().display())).env("MALLOC_CHECK_", "3");
        }
        let output = succeed(command.arg(&file));
        let told: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let dump = read_dump(&file);
        let own = |block: &&Value| block["req"].as_u64().is_some_and(is_kept_by_sizes);
        let blocks: Vec<_> = dump["blockList"].as_array().unwrap().iter().filter(own).collect();
        let slop = |block: &&Value| block.get("slop").and_then(Value::as_u64).unwrap_or(0) * number_of(block);
        assert_eq!(blocks.iter().map(|block| number_of(block)).sum::<u64>(), 48, "{options} {behind}");
        assert_eq!(blocks.iter().map(slop).sum::<u64>(), told, "{options} {behind}");
    }
}

/// Whether the program `sizes` counts its blocks of this size.
fn is_kept_by_sizes(requested: u64) -> bool {
    let sizes = [1501, 1512, 1513, 1519, 1528, 1529, 2047, 2049, 16384, 70000, 200_000, 3 << 20];
    let is_near = |least: u64| (least..least + 12).contains(&requested);
    sizes.contains(&requested) || is_near(7000) || is_near(8000) || is_near(9000)
}

/// Several libraries have the same address, one after another: their blocks and frames outlive them.
#[test]
fn of_libraries_that_were_unloaded() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "unloaded");
    let plugin = |name: &str, bytes: u32| {
        let flags = ["-shared", "-fPIC", &format!("-DNAME={name}_keeps"), &format!("-DBYTES={bytes}")];
        compile(folder.path(), "cc", "plugin.c", &format!("{name}.so"), &flags)
    };
    let [first, second, third] = [plugin("first", 1201), plugin("second", 1202), plugin("third", 1203)];
    // The program loads the first library again.
    let dumps = dumps(&program, &[&first, &second, &third, &first], "--mode=live --stacks=full");
    let dump = &dumps[0];
    for (library, bytes, number) in [(&first, 1201, 2), (&second, 1202, 1), (&third, 1203, 1)] {
        assert_eq!(count(dump, |block| block["req"] == bytes), number);
        for block in dump["blockList"].as_array().unwrap().iter().filter(|block| block["req"] == bytes) {
            let frames = frames(dump, &block["alloc"]);
            assert!(frames[1].starts_with(&format!("#00: ???[{} +0x", library.display())), "{frames:#?}");
            assert!(frames.iter().all(|frame| !frame.contains("??? (")), "{frames:#?}");
        }
        let modules = dump["modules"].as_array().unwrap();
        let of_it = |module: &&Value| module["path"] == library.to_str().unwrap();
        let module = modules.iter().find(of_it).unwrap();
        assert_eq!(module["unloaded"], true);
        assert_eq!(module["buildId"].as_str().unwrap().len(), 40);
    }

    let path = folder.path().join("dump.json");
    std::fs::write(&path, dump.to_string()).unwrap();
    let mut dump = dmd::analyze::read(&path).unwrap();
    dump.symbolize(&SymbolOptions::new());
    let text = Analysis::new(dump, &AnalyzeOptions::new()).text(&[]).to_string();
    for name in ["first_keeps", "second_keeps", "third_keeps"] {
        assert!(text.contains(name), "{text}");
    }
}

/// DMD distinguishes libraries without a build id by their path and some of their contents.
#[test]
fn of_libraries_without_build_ids() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "unloaded");
    let plugin = |name: &str, bytes: u32| {
        let bytes = format!("-DBYTES={bytes}");
        let flags = ["-shared", "-fPIC", "-Wl,--build-id=none", "-DNAME=keeps", &bytes];
        compile(folder.path(), "cc", "plugin.c", &format!("{name}.so"), &flags)
    };
    let [first, second, third] = [plugin("first", 1401), plugin("second", 1402), plugin("third", 1403)];
    let dumps = dumps(&program, &[&first, &second, &third, &first], "--mode=live --stacks=full");
    let dump = &dumps[0];
    let mut places = BTreeSet::new();
    for (library, bytes, number) in [(&first, 1401, 2), (&second, 1402, 1), (&third, 1403, 1)] {
        assert_eq!(count(dump, |block| block["req"] == bytes), number);
        for block in dump["blockList"].as_array().unwrap().iter().filter(|block| block["req"] == bytes) {
            let frames = frames(dump, &block["alloc"]);
            assert!(frames[1].starts_with(&format!("#00: ???[{} +0x", library.display())), "{frames:#?}");
        }
        let modules = dump["modules"].as_array().unwrap();
        let module = modules.iter().find(|module| module["path"] == library.to_str().unwrap()).unwrap();
        assert_eq!((&module["unloaded"], &module["buildId"]), (&Value::from(true), &Value::from("")));
        places.insert(module["start"].as_str().unwrap());
    }
    assert_eq!(places.len(), 1, "all libraries must have the same address, or the test proves nothing");
}

/// The libraries have the same name and the same address, but different build ids and blocks.
#[test]
fn of_libraries_that_were_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "rebuilt");
    let dumped = tempfile::tempdir().unwrap();
    let library = |name: &str, bytes: u32| {
        let flags = ["-shared", "-fPIC", "-Wl,--build-id=sha1", &format!("-DBYTES={bytes}")];
        compile(folder.path(), "cc", "many.c", &format!("{name}.so"), &flags)
    };
    let libraries = [library("first", 1301), library("second", 1302), library("third", 1303)];
    let options = "--mode=live --stacks=full --quiet --dump-at-exit --output=dump.json";
    let output = succeed(preloaded(&program, options).args(&libraries).current_dir(dumped.path()));
    assert_eq!(output.stdout, b"0 moved\n");
    let dump = read_dump(dumped.path().join("dump.json"));

    let modules = dump["modules"].as_array().unwrap();
    let name = libraries[0].to_str().unwrap();
    let of_name = |module: &&Value| module["path"].as_str().unwrap().starts_with(name);
    let builds: Vec<&Value> = modules.iter().filter(of_name).collect();
    assert_eq!(builds.len(), 3, "{builds:#?}");
    // The file contains only the last build.
    let named: Vec<String> = builds
        .iter()
        .enumerate()
        .map(|(index, module)| match index {
            0 => name.to_owned(),
            _ => format!("{name} (build {})", &module["buildId"].as_str().unwrap()[..8]),
        })
        .collect();
    assert!(builds.iter().zip(&named).all(|(module, name)| module["path"] == **name), "{builds:#?}");
    let ids: BTreeSet<&str> = builds.iter().map(|module| module["buildId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "{builds:#?}");
    assert!(builds.iter().all(|module| module["unloaded"] == true), "{builds:#?}");

    // Each library has its own frames, although they are at the same addresses.
    let blocks = dump["blockList"].as_array().unwrap();
    let stacks = |bytes: u64| -> BTreeSet<&str> {
        let of_size = blocks.iter().filter(|block| block["req"] == bytes);
        of_size.map(|block| block["alloc"].as_str().unwrap()).collect()
    };
    let keys = |bytes| -> BTreeSet<&str> {
        let inner = |stack: &&str| dump["traceTable"][*stack][1].as_str().unwrap();
        stacks(bytes).iter().map(inner).collect()
    };
    for bytes in [1301, 1302, 1303] {
        assert_eq!((count(&dump, |block| block["req"] == bytes), stacks(bytes).len()), (20, 20));
        assert_eq!(keys(bytes).len(), 20);
    }
    assert!(keys(1301).is_disjoint(&keys(1302)) && keys(1302).is_disjoint(&keys(1303)));
    for (bytes, name) in [1303, 1302, 1301].into_iter().zip(&named) {
        for key in keys(bytes) {
            let frame = dump["frameTable"][key].as_str().unwrap();
            assert!(frame.starts_with(&format!("#00: ???[{name} +0x")), "{frame}");
        }
    }
    // DMD records the program's own stacks anew once for each library that replaces another library at the same
    // address, and not for each function of the library.
    assert_eq!(count(&dump, |block| block["req"] == 2222), 60);
    assert!((1..=3).contains(&stacks(2222).len()), "{:?}", stacks(2222));
}

/// Frames have the right library's name, even if libraries replace each other often.
#[test]
fn of_libraries_that_were_loaded_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "reloaded");
    let plugin = |name: &str, bytes: u32| {
        let flags = ["-shared", "-fPIC", "-DNAME=keeps", "-Wl,--build-id=sha1", &format!("-DBYTES={bytes}")];
        compile(folder.path(), "cc", "plugin.c", &format!("{name}.so"), &flags)
    };
    let libraries = [plugin("first", 1401), plugin("second", 1402)];
    let dumped = tempfile::tempdir().unwrap();
    let options = "--mode=live --stacks=full --quiet --dump-at-exit --output=dump.json";
    for times in ["600", "601"] {
        let mut run = preloaded(&program, options);
        let output = succeed(run.args(&libraries).arg(times).current_dir(dumped.path()));
        assert_eq!(output.stdout, b"same place\n");
        let dump = read_dump(dumped.path().join("dump.json"));
        for (library, bytes) in libraries.iter().zip([1401, 1402]) {
            let blocks = dump["blockList"].as_array().unwrap();
            let block = blocks.iter().find(|block| block["req"] == bytes).unwrap();
            let frames = frames(&dump, &block["alloc"]);
            let name = format!("#00: ???[{} +0x", library.display());
            assert!(frames[1].starts_with(&name) && frames[2].starts_with(&name), "{bytes}: {frames:#?}");
        }
    }
}
