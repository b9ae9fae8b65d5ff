//! Both hooks at once: each block counts once, and no block is lost.

use crate::support::{command, count, preloaded, read_dump, run, succeed, victim};

fn check(allocator: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.json.gz");
    let victim = victim(&format!("hooks_{allocator}"));
    succeed(preloaded(&victim, "--mode=live --stacks=full --quiet").arg(&file));
    let dump = read_dump(&file);
    assert_eq!(count(&dump, |block| block["req"] == 100 && block["alloc"].is_string()), 1000);
    assert_eq!(count(&dump, |block| block["req"] == 201), 500);

    let file = folder.path().join("wrapper.json");
    succeed(command(&victim).arg(&file).env("DMD", "--mode=live --stacks=full --quiet"));
    let dump = read_dump(&file);
    assert_eq!(count(&dump, |block| block["req"] == 100), 1000);
    assert_eq!(count(&dump, |block| block["req"] == 201), 0, "the wrapper must not record malloc's blocks");
}

#[test]
fn over_the_system_allocator() {
    check("system");
}

#[test]
fn over_mimalloc() {
    check("mimalloc");
}

#[test]
fn over_jemalloc() {
    check("jemalloc");
}

#[test]
fn a_program_without_a_hook_is_told_that_nothing_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(command(victim("smoke_preloaded")).arg(folder.path()).env("DMD", "1"));
    assert_eq!(output.status.code(), Some(101));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("NotRunning"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Options of a program work like the options in `$DMD`: scan mode takes every stack, and the dump contains the mode.
#[test]
fn a_program_chooses_scan_mode_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scan.json");
    succeed(command(victim("scan")).arg(&file));
    let dump = read_dump(&file);
    assert_eq!(dump["invocation"]["mode"], "scan");
    assert_eq!(dump["sampling"]["stacks"], "full");
    assert_eq!(count(&dump, |block| block["req"] == 33 && block["alloc"].is_string()), 100);
}
