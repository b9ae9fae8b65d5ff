//! Core files that the system and that gcore write.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{listening, victim};
use crate::run::libdmd;

/// Returns the output of a command that finds processes by their sockets in a folder.
fn stdout(sockets: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let output = command.args(arguments).env("XDG_RUNTIME_DIR", sockets).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the number and the bytes of the blocks of each type whose name contains a word.
fn blocks(sockets: &Path, source: &str, word: &str) -> Vec<(String, u64, u64)> {
    let found: Value = serde_json::from_str(&stdout(sockets, &["types", source, "--json"])).unwrap();
    assert_eq!((&found["wrongSizes"], &found["disagree"]), (&0.into(), &0.into()), "{found:#}");
    let rows = found["types"].as_array().unwrap().iter();
    let mut rows: Vec<_> = rows
        .map(|row| (row["type"].as_str().unwrap().to_owned(), row["blocks"].as_u64(), row["bytes"].as_u64()))
        .filter(|(name, ..)| name.contains(word))
        .map(|(name, blocks, bytes)| (name, blocks.unwrap(), bytes.unwrap()))
        .collect();
    rows.sort();
    rows
}

/// Returns the names of the holders of a block of a type.
fn chain(source: &str, name: &str) -> Vec<String> {
    let found: Value =
        serde_json::from_str(&stdout(Path::new("/"), &["why", source, name, "--json"])).unwrap();
    let links = found["chain"].as_array().unwrap().iter();
    links.map(|link| link["name"].as_str().unwrap().to_owned()).collect()
}

/// Whether a crashing program leaves a core file in its folder.
fn are_written() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let most = Command::new("sh").args(["-c", "ulimit -H -c"]).output().unwrap().stdout;
    pattern.starts_with("core") && most == b"unlimited\n"
}

#[test]
fn a_crash_leaves_all_in_its_core_file() {
    if !are_written() {
        eprintln!("skipped: the system writes no core files into the folders of programs");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/typed/tests/victims/crash.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition=2024", "-Copt-level=1", "-Cdebuginfo=2"]).arg(source);
    assert!(compile.current_dir(folder.path()).status().unwrap().success());
    let mut crash = Command::new("sh");
    crash.args(["-c", "ulimit -c unlimited && exec ./crash"]).current_dir(folder.path());
    crash.env("DMD", "--stacks=full --quiet").env("LD_PRELOAD", libdmd());
    let output = crash.output().unwrap();
    assert!(output.status.signal() == Some(6) && output.status.core_dumped(), "{output:?}");
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let cores: Vec<_> =
        files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("core")).collect();
    let [core] = &cores[..] else { panic!("{cores:?}") };
    let core = core.to_str().unwrap();

    let rows = blocks(folder.path(), core, "crash::");
    let of = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1);
    assert_eq!(
        ["[crash::User]", "[crash::Role]", "[crash::Order]"].map(of),
        [Some(1), Some(10), Some(1)],
        "{rows:?}"
    );
    assert_eq!(chain(core, "[crash::Role]"), ["static crash::USERS", "[crash::User].roles"]);
    let [thread] = &chain(core, "[crash::Order]")[..] else { panic!() };
    assert!(thread.starts_with("thread ") && thread.ends_with(": crash::work"), "{thread}");
    let text = stdout(folder.path(), &["waste", core]);
    assert!(text.contains(" are not used ("), "{text}");
}

#[test]
fn gcore_writes_what_a_copy_has() {
    if Command::new("gcore").output().is_err() {
        eprintln!("skipped: gcore is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut victim = listening(&victim(), &[&folder.path().join("dump.json")], folder.path());
    let pid = victim.id().to_string();
    let prefix = folder.path().join("core");
    let output = Command::new("gcore").arg("-o").arg(&prefix).arg(&pid).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let core = format!("{}.{pid}", prefix.display());
    let is_forbidden = said.contains("Operation not permitted");
    if is_forbidden {
        eprintln!("skipped: the system lets gcore read no other process: {said}");
    } else {
        assert!(output.status.success(), "{said}");
        let rows = blocks(folder.path(), &core, "typed_heap_victim");
        assert!(rows.iter().any(|row| row.0 == "typed_heap_victim::Node" && row.1 == 50), "{rows:?}");
        assert_eq!(rows, blocks(folder.path(), &pid, "typed_heap_victim"));
        let copies = chain(&core, "typed_heap_victim::Copies");
        assert_eq!(copies[0], "static typed_heap_victim::STORE.jobs");
    }
    drop(victim.stdin.take());
    assert!(victim.wait().unwrap().success());
}
