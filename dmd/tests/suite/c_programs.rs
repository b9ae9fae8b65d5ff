//! C programs that are difficult for a preloaded library (`tests/torture`), and a program that uses `dmd.h`.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{
    c_program, command, compile, count, frames, libdmd, preloaded, read_dump, run, succeed, victim,
    without_reasons,
};

/// The program has the same output and status with and without `libdmd.so`, under options of all kinds.
fn same(name: &str) {
    same_with(name, &[]);
}

fn same_with(name: &str, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), name);
    let plain = run(command(&program).args(arguments).current_dir(folder.path()));
    for options in
        ["--stacks=full", "--stacks=partial", "--mode=cumulative", "--mode=scan", "--sample-below=4093"]
    {
        let options = format!("{options} --quiet --dump-at-exit --output=d-%p.json");
        let recorded = run(preloaded(&program, &options).args(arguments).current_dir(folder.path()));
        assert_eq!(recorded.status, plain.status, "{options}: {recorded:?}");
        assert_eq!(recorded.stdout, plain.stdout, "{options}");
        if name == "limits" {
            assert_eq!(without_reasons(&recorded.stderr), plain.stderr, "{options}");
        } else {
            assert_eq!(recorded.stderr, plain.stderr, "{options}");
        }
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let dropped = read_dump(&path)["dropped"]["blocks"].as_u64().unwrap();
                assert!(dropped == 0 || name == "no_memory", "{options}: {dropped} dropped");
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn no_error_is_left_from_before_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "first");
    // The program starts in a folder that was deleted.
    let script = format!(
        "mkdir gone && cd gone && rmdir ../gone && DMD=--quiet LD_PRELOAD={} exec {}",
        libdmd().display(),
        program.display()
    );
    let output = succeed(command("sh").args(["-c", &script]).current_dir(folder.path()));
    assert!(output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "errno 0, dlerror none\n");
}

#[test]
fn handlers_free() {
    same_with("handler_frees", &[if std::env::var_os("THOROUGH").is_some() { "5000" } else { "500" }]);
}

#[test]
fn handlers_report() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "handler_reports");
    let file = folder.path().join("dump.json");
    for options in ["--stacks=full", "--stacks=partial"] {
        let output = succeed(preloaded(&program, &format!("{options} --quiet")).arg(&file));
        assert_eq!(output.stdout, b"done\n", "{options}");
        let reported = |block: &Value| block["reps"].as_array().map_or(0, Vec::len) == 1;
        assert_eq!(count(&read_dump(&file), |block| block["req"] == 4242 && reported(block)), 1);
    }
}

/// Forks and reports do not wait for the thread that writes a dump.
#[test]
fn who_reads_a_dump_reports_and_forks() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "slow_reader");
    let pipe = folder.path().join("pipe");
    succeed(command("mkfifo").arg(&pipe));
    let output = succeed(preloaded(&program, "--stacks=full --quiet").arg(&pipe));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "error 0, child 0\n");
}

#[test]
fn forks_while_threads_allocate() {
    same_with("fork_threads", &[if std::env::var_os("THOROUGH").is_some() { "100" } else { "10" }]);
}

#[test]
fn handlers_fork() {
    same("handler_forks");
}

#[test]
fn edges_of_the_allocation_functions() {
    same("edges");
}

#[test]
fn threads_come_and_go() {
    same("churn");
}

#[test]
fn signals_and_small_stacks() {
    same("signals");
}

#[test]
fn libraries_come_and_go() {
    same("libraries");
}

#[test]
fn memory_runs_out() {
    same("no_memory");
}

#[test]
fn deep_stacks_and_other_stacks() {
    same("deep");
}

#[test]
fn descriptors_are_the_program_s() {
    same("descriptors");
}

#[test]
fn a_program_that_confines_itself() {
    same("confined");
}

/// At the end of the process, the library does not ask the kernel about filters, because a filter may forbid this call.
#[test]
fn programs_that_allow_themselves_next_to_nothing() {
    for how in ["prctl", "syscall", "thread", "all"] {
        same_with("strict", &[how]);
    }
}

/// Only filters of the first thread prevent the dump, since the first thread ends the process.
#[test]
fn a_thread_that_confines_itself_leaves_the_others_their_dump() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "strict");
    for (how, written) in [("prctl", false), ("syscall", false), ("all", false), ("thread", true)] {
        let file = folder.path().join(format!("{how}.json"));
        let options = format!("--quiet --dump-at-exit --output={}", file.display());
        assert_eq!(run(preloaded(&program, &options).arg(how)).status.code(), Some(6), "{how}");
        assert_eq!(file.exists(), written, "{how}");
    }
}

#[test]
fn titles_in_place_of_arguments_and_environment() {
    for how in ["sum", "last"] {
        same_with("title_room", &[how]);
    }
}

#[test]
fn a_program_with_its_own_malloc_is_told() {
    same("own_malloc");
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(&mut preloaded(c_program(folder.path(), "own_malloc"), "1"));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.ends_with("] the program defines its own malloc: its blocks are not recorded\n"), "{text}");
}

#[test]
fn ways_to_end() {
    same("endings");
}

#[test]
fn a_dump_does_not_fit() {
    same("limits");
    same_with("limits", &["address space"]);
}

/// If memory is too short to merge blocks, the dump contains them one by one.
#[test]
fn a_dump_for_which_memory_is_short_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let program = c_program(folder.path(), "short");
    for mode in ["live", "cumulative", "dark-matter"] {
        let options = format!("--mode={mode} --stacks=full --max-frames=256 --quiet");
        let output = succeed(preloaded(&program, &options).args([&file, &file.with_extension("short.json")]));
        assert_eq!(output.stdout, b"error 0, 1 there\nerror 0, 1 there\n", "{mode}");
        let entries = ["json", "short.json"].map(|extension| {
            let dump = read_dump(file.with_extension(extension));
            assert_eq!(dump["dropped"]["blocks"], 0);
            assert!(dump["dropped"].get("stacksInDump").is_none(), "{}", dump["dropped"]);
            assert_eq!(count(&dump, |block| block["req"] == 999), 60, "{mode}");
            let of_999 = dump["blockList"].as_array().unwrap().iter().filter(|block| block["req"] == 999);
            of_999.map(|block| frames(&dump, &block["alloc"])).collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!(entries[0].len(), 60, "{mode}");
        assert_eq!(entries[0], entries[1], "{mode}");
    }
}

#[test]
fn a_dump_cannot_be_written() {
    same("elsewhere");
}

#[test]
fn blocks_are_those_that_are_live() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "entry_points");
    let file = folder.path().join("dump.json");
    let output = succeed(preloaded(&program, "--stacks=full --quiet").arg(&file));
    assert_eq!(output.stdout, b"ok\n");
    let dump = read_dump(&file);
    assert_eq!(count(&dump, |block| block["req"] == 1234), 7);
    assert_eq!(count(&dump, |block| block["req"] == 1234 && block.get("reps").is_some()), 2);
    assert_eq!(count(&dump, |block| block["req"] == 4321), 0, "freed");
    // One block from each function of the malloc family.
    for requested in [3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008] {
        assert_eq!(count(&dump, |block| block["req"] == requested), 1, "{requested}");
    }
    assert_eq!(count(&dump, |block| block["req"] == 100_000_000), 1, "a large block");
    assert_eq!(dump["reportFaultCounts"]["interior"], 1);
    assert_eq!(dump["reportFaultCounts"]["freed"], 1);
    assert_eq!(dump["reportFaultCounts"]["not-heap"], 1);
    assert_eq!(dump["reportFaultCounts"]["freed-since"], 1);
    // Without the library, DMD does not run.
    let output = run(command(&program).arg(&file));
    assert_eq!(output.stdout, b"not running\n");
}

/// The library reports a pointer into the middle of a block, whatever the block's size and the distance from the
/// previous block.
#[test]
fn pointers_into_the_middle_of_blocks_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let program = c_program(folder.path(), "inside");
    let output = succeed(preloaded(&program, "--stacks=full --quiet").arg(&file));
    assert_eq!(output.stdout, b"100 inside, 33 behind\n");
    let counts = &read_dump(&file)["reportFaultCounts"];
    assert_eq!(counts["interior"], 100);
    assert_eq!(counts["not-heap"].as_u64().unwrap() + counts["freed"].as_u64().unwrap(), 33);
    // If the table lacks some blocks, DMD reports no faults.
    let output = succeed(preloaded(&program, "--sample-below=5000000 --quiet").arg(&file));
    assert_eq!(output.stdout, b"100 inside, 33 behind\n");
    let counts = &read_dump(&file)["reportFaultCounts"];
    assert!(counts.as_object().unwrap().values().all(|count| count == 0), "{counts}");
}

/// The plugin stays loaded, since the engine may run its reporters at any time.
#[test]
fn a_plugin_that_connects_stays() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "connects");
    let flags = ["-DPLUGIN", "-shared", "-fPIC"];
    let plugin = compile(folder.path(), "cc", "connects.c", "plugin.so", &flags);
    assert_eq!(succeed(command(&program).arg(&plugin)).stdout, b"gone\n");
    assert_eq!(succeed(preloaded(&program, "--quiet").arg(&plugin)).stdout, b"there\n");
}

/// A sampled block keeps its size, even if it represents so many bytes that every block of that size would be
/// recorded.
#[test]
fn a_sampled_block_has_its_own_size() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "sampled");
    let file = folder.path().join("dump.json");
    for below in [9973, 5_000_011] {
        let options = format!("--sample-below={below} --quiet");
        let output = succeed(preloaded(&program, &options).arg(&file));
        assert_eq!(output.stdout, b"ok\n");
        let dump = read_dump(&file);
        let sampled = count(&dump, |block| block["sampled"] == true);
        assert_eq!(count(&dump, |block| block["sampled"] == true && block["req"] == below), sampled);
        let bytes = 4800 * 2000;
        assert!((bytes / below..=bytes / below * 2 + 10).contains(&sampled), "{sampled}");
    }
}

/// A dump allocates nothing in the heap that it describes, and other threads continue during the dump.
#[test]
fn dumps_while_others_allocate() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "dumping");
    for options in ["--stacks=full", "--mode=cumulative"] {
        let options = format!("{options} --quiet");
        let output = succeed(preloaded(&program, &options).arg(folder.path()));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "0 same\n0 others went on\n", "{options}");
        for name in (0..10).map(|number| format!("{number}.json")).chain(["alone.json".to_owned()]) {
            let dump = read_dump(folder.path().join(name));
            assert_eq!(count(&dump, |block| block["req"] == 6543), 200);
        }
    }
}

/// Attaches gdb to a program after it has printed that it is ready, and runs the command from `dmd.h` and the guide.
/// Returns the dump and gdb's output; `None` if gdb is missing.
fn dump_by_gdb(program: &mut Command) -> Option<(Value, String)> {
    if Command::new("gdb").arg("--version").output().is_err() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gdb.json");
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let call = format!("call ((int (*)(const char *))DMDReportAndDump)(\"{}\")", file.display());
    let mut gdb = command("gdb");
    gdb.args(["-q", "-batch", "-p", &child.id().to_string(), "-ex", "set language c", "-ex", &call]);
    let gdb = run(&mut gdb);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(file.exists(), "{gdb:?}");
    Some((read_dump(&file), String::from_utf8_lossy(&gdb.stdout).into_owned()))
}

#[test]
fn a_dump_is_had_from_gdb() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = preloaded(c_program(folder.path(), "waits"), "--stacks=full --quiet");
    let Some((dump, said)) = dump_by_gdb(&mut program) else { return };
    assert!(said.contains("= 0\n"), "{said}");
    assert_eq!(count(&dump, |block| block["req"] == 777), 10);
}

/// The program has debug information with lines and without types.
#[test]
fn a_dump_of_a_program_with_dmd_built_in_is_had_from_gdb() {
    let mut program = command(victim("waiting"));
    let Some((dump, said)) = dump_by_gdb(program.env("DMD", "--stacks=full --quiet")) else { return };
    assert!(said.contains("= 0\n"), "{said}");
    assert_eq!(count(&dump, |block| block["req"] == 10_000), 100);
    assert_eq!(count(&dump, |block| block["req"] == 10_000 && block.get("reps").is_some()), 100);
}

/// The number of frames from `/name` in the stacks of the two blocks of `gaps`.
fn frames_in_gaps(dump: &Path, name: &str) -> [usize; 2] {
    let dump = read_dump(dump);
    [1000, 2000].map(|requested| {
        let block = dump["blockList"].as_array().unwrap().iter().find(|block| block["req"] == requested);
        let trace = dump["traceTable"][block.unwrap()["alloc"].as_str().unwrap()].as_array().unwrap();
        let frames = trace.iter().map(|frame| dump["frameTable"][frame.as_str().unwrap()].as_str().unwrap());
        frames.filter(|frame| frame.contains(&format!("/{name} +"))).count()
    })
}

const DUMP_OF_GAPS: &str = "--stacks=full --mode=live --quiet --dump-at-exit --output=dump.json";

#[test]
fn programs_with_gaps_between_their_segments() {
    let far = ["-Wl,-z,separate-code", "-Wl,-z,max-page-size=0x200000"];
    let fixed = ["-no-pie", far[0], far[1]];
    for (name, flags) in [("near", &[][..]), ("far", &far), ("far-fixed", &fixed)] {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), "cc", "gaps.c", name, flags);
        succeed(preloaded(&program, DUMP_OF_GAPS).current_dir(folder.path()));
        // The first stack has `leaf`, `main` and `_start`; the second also has `outer`.
        assert_eq!(frames_in_gaps(&folder.path().join("dump.json"), name), [3, 4], "{name}");
    }
}

#[test]
fn programs_that_the_loader_was_told_to_start() {
    let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loader.into_iter().find(|path| Path::new(path).exists()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "cc", "gaps.c", "told", &[]);
    succeed(preloaded(loader, DUMP_OF_GAPS).arg(program).current_dir(folder.path()));
    assert_eq!(frames_in_gaps(&folder.path().join("dump.json"), "told"), [3, 4]);
}
