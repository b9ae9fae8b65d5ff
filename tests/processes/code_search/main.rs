//! The example `code_search` as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod dark_matter;
// The program `about-memory` is built only in debug.
#[cfg(debug_assertions)]
mod serve;
mod tree;

use std::path::PathBuf;
use std::process::Command;

/// The path of the example in this test's build.
fn program() -> PathBuf {
    build(&["-p", "examples", "--example", "code_search"]).join("examples/code_search")
}

/// The path of the program `about-memory` in this test's build.
#[cfg(debug_assertions)]
fn about_memory() -> PathBuf {
    build(&["-p", "about-memory", "--features", "program", "--bin", "about-memory"]).join("about-memory")
}

/// Builds a program that the tests start, and returns the folder of this test's build. Some ways to run tests do not
/// build such programs. If the variable `PROGRAMS_ARE_BUILT` is set, `./test` has built them already.
fn build(target: &[&str]) -> PathBuf {
    // This test is in `target/debug/deps`, or in the same place of another profile and folder.
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
