//! The first steps of a newcomer, as the README describes them: a new project beside the clone, its documentation and
//! a run.
//!
//! The project has exactly the dependencies and features of the README. The workspace's own build has more features.
//! Therefore only this project's build finds a link to an item that these features lack, or a lint that fails only with
//! these features.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// The folder of the clone.
fn clone() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A cargo that uses no settings of the surrounding build and no network.
fn cargo(folder: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PROFILE_") || name == "RUSTFLAGS" {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(folder).args(arguments).args(["--offline", "--quiet"]);
    // Keep the build folder, so that the next run of the test compiles only changes.
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer"));
    cargo
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    output
}

/// The code blocks of a language in the README, under "Add it to your program".
fn blocks(language: &str) -> Vec<String> {
    let readme = fs::read_to_string(clone().join("README.md")).unwrap();
    let (_, part) = readme.split_once("\n## Add it to your program\n").unwrap();
    let mut blocks = Vec::new();
    for block in part.split(&format!("\n```{language}\n")).skip(1) {
        blocks.push(block.split_once("\n```").unwrap().0.to_owned());
    }
    assert!(!blocks.is_empty(), "{language}");
    blocks
}

/// The project of the README, in a new folder.
fn project(folder: &Path) -> PathBuf {
    succeed(&mut cargo(folder, &["init", "--vcs", "none", "--name", "my-program", "my-program"]));
    let project = folder.join("my-program");
    // Use the versions that are already downloaded, since the test has no network.
    fs::copy(clone().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let path = line.strip_prefix("cargo add --path ../memory-reporter/").expect(line);
        succeed(&mut cargo(&project, &["add", "--path", clone().join(path).to_str().unwrap()]));
    }
    fs::write(project.join("src/main.rs"), &blocks("rust")[0]).unwrap();
    project
}

/// The project's packages that do not come from a registry: the project and the workspace's crates.
fn own_packages(project: &Path) -> Vec<String> {
    let tree = succeed(&mut cargo(project, &["tree", "--edges", "normal", "--prefix", "none"]));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let mut names: Vec<String> = tree
        .lines()
        .filter(|line| line.contains(" (/"))
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_project_of_the_readme_documents_itself() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let packages = own_packages(&project);
    assert!(packages.iter().any(|name| name == "memory-reporter"), "{packages:?}");
    let selected: Vec<&str> = packages.iter().flat_map(|name| ["--package", name]).collect();
    // For a newcomer, a broken link is a warning. Here it is an error.
    succeed(
        cargo(&project, &[&["doc", "--no-deps"], &*selected].concat()).env("RUSTDOCFLAGS", "-D warnings"),
    );
    if env::var_os("THOROUGH").is_some() {
        succeed(&mut cargo(&project, &["doc"]));
    }
}

/// The project compiles without a warning, both in the newcomer's build and in the workspace's, and prints the tree of
/// the README.
#[test]
fn the_project_of_the_readme_runs() {
    if env::var_os("THOROUGH").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(&mut cargo(&project(folder.path()), &["run"]));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, tree) = text.split_once("Explicit Allocations\n\n").unwrap();
    let names = |tree: &str| -> Vec<String> {
        tree.lines().take(3).map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(tree), names(&blocks("text")[0]), "{text}");
}

/// The documentation of each crate, with and without its default features. Each crate is built alone, because the
/// workspace's build unites the features of all crates.
#[test]
fn each_crate_documents_itself_alone() {
    if env::var_os("THOROUGH").is_none() {
        return;
    }
    for package in [
        "about-memory",
        "dmd",
        "dmd-analyze",
        "dmd-attach",
        "dmd-format",
        "dmd-redirect",
        "dmd-unwind",
        "heap-graph",
        "memory-endpoint",
        "memory-export",
        "memory-report",
        "memory-reporter",
        "memory-reporter-derive",
        "typed-heap",
    ] {
        for features in [&[][..], &["--no-default-features"]] {
            let arguments =
                [&["doc", "--locked", "--no-deps", "--lib", "--package", package], features].concat();
            succeed(cargo(clone(), &arguments).env("RUSTDOCFLAGS", "-D warnings"));
        }
    }
}
