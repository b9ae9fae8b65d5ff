//! Programs under engines of other versions: with more or fewer entries in the table, and under another name.
//!
//! The programs are `hooks_system`, which has the wrapper `dmd::Dmd`, and `reporting`, which has only
//! `memory-reporter`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{command, compile, count, libdmd, read_dump, succeed, victim};

/// Compiles a library that passes on the table of `libdmd.so` with more entries, or with fewer.
fn other_engine(folder: &Path, entries: i32) -> PathBuf {
    let entries = format!("-DENTRIES={entries}");
    compile(folder, "cc", "other_engine.c", "engine.so", &["-shared", "-fPIC", &entries])
}

fn under(engine: &Path, program: &str, options: &str, folder: &Path) -> Command {
    let mut preloaded = OsString::from(engine);
    preloaded.push(":");
    preloaded.push(libdmd());
    let mut command = command(victim(program));
    command.env("DMD", options).env("LD_PRELOAD", preloaded).current_dir(folder);
    command
}

fn marked(dump: &Value) -> u64 {
    count(dump, |block| block["reps"].is_array())
}

#[test]
fn a_table_with_more_entries_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let engine = other_engine(folder.path(), 3);
    let options = "--stacks=full --dump-at-exit --output=end-%p.json";

    let output = succeed(under(&engine, "hooks_system", options, folder.path()).arg("both.json"));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    // The engine of libdmd.so records the wrapper's blocks, and sees C's blocks.
    let dump = read_dump(folder.path().join("both.json"));
    assert_eq!(count(&dump, |block| block["req"] == 100), 1000);
    assert_eq!(count(&dump, |block| block["req"] == 201), 500);
    assert_eq!(dumps(folder.path(), "end-").len(), 1);

    succeed(under(&engine, "reporting", options, folder.path()).arg("marked.json"));
    let dump = read_dump(folder.path().join("marked.json"));
    assert_eq!(count(&dump, |block| block["req"] == 1000 && block["reps"].is_array()), 10);
}

#[test]
fn a_table_with_fewer_entries_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let engine = other_engine(folder.path(), -1);
    let options = "--stacks=full --dump-at-exit --output=end-%p.json";

    let output = succeed(under(&engine, "hooks_system", options, folder.path()).arg("wrapper.json"));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("libdmd.so is older than this program's copy of the crate dmd"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    // The program's engine records the blocks of the wrapper, and libdmd.so records the blocks of malloc.
    let dump = read_dump(folder.path().join("wrapper.json"));
    assert_eq!(count(&dump, |block| block["req"] == 100), 1000);
    assert_eq!(count(&dump, |block| block["req"] == 201), 0);
    let [first, second] = &dumps(folder.path(), "end-")[..] else {
        panic!("expected one dump of each engine")
    };
    let of_c = |dump: &Value| count(dump, |block| block["req"] == 201);
    let mut counts = [of_c(&read_dump(first)), of_c(&read_dump(second))];
    counts.sort_unstable();
    assert_eq!(counts, [0, 500]);

    let other = tempfile::tempdir().unwrap();
    succeed(under(&engine, "reporting", options, other.path()).arg("unmarked.json"));
    let dump = read_dump(other.path().join("unmarked.json"));
    assert_eq!(count(&dump, |block| block["req"] == 1000), 10);
    assert_eq!(marked(&dump), 0, "the program must not use the table");
}

#[test]
fn a_library_of_another_version_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let old = compile(folder.path(), "cc", "other_engine.c", "old.so", &["-shared", "-fPIC"]);
    let options = "--stacks=full --mode=live";
    for program in ["hooks_system", "hooks_jemalloc"] {
        let file = folder.path().join(format!("{program}.json"));
        let mut command = command(victim(program));
        let output = succeed(command.env("DMD", options).env("LD_PRELOAD", &old).arg(&file));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(count(&read_dump(&file), |block| block["req"] == 100), 1000);
    }
    // In the same way, programs for version 1 do not find `libdmd.so`: `exports.rs` checks all names that it exports.
    succeed(command(victim("reporting")).env("LD_PRELOAD", &old));
}

/// The dumps in a folder whose names start with this text.
fn dumps(folder: &Path, start: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(start)).collect()
}
