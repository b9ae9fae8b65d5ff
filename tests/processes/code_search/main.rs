//! The example `code_search` as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod dark_matter;
// The program `about-memory` is there in debug only.
#[cfg(debug_assertions)]
mod serve;
mod tree;

use std::path::PathBuf;
use std::process::Command;

/// The example of this test's build.
fn program() -> PathBuf {
    build(&["-p", "examples", "--example", "code_search"]).join("examples/code_search")
}

/// The program `about-memory` of this test's build.
#[cfg(debug_assertions)]
fn about_memory() -> PathBuf {
    build(&["-p", "about-memory", "--features", "program", "--bin", "about-memory"]).join("about-memory")
}

/// The folder of this test's build. Not every way to run tests builds what they start, so this builds it, unless the
/// variable `PROGRAMS_ARE_BUILT` says that `./test` did.
fn build(target: &[&str]) -> PathBuf {
    // This test is in `target/debug/deps`, or the same of another profile and folder.
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked"]).args(target);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.arg("--target-dir").arg(profile.parent().unwrap()).status().unwrap().success());
    }
    profile.to_owned()
}
