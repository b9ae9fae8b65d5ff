//! The portable engine takes the same stacks as the native engine in the same program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use dmd::analyze::symbolize::SymbolOptions;

use crate::support::{build_folder, command, succeed, victim};

/// Builds the program with the native engine, in a separate folder.
fn with_native_engine(name: &str) -> PathBuf {
    let target = build_folder().parent().unwrap().join("native-engine");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "memory-dmd", "--example", name, "--target-dir"]).arg(&target);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    target.join(build_folder().file_name().unwrap()).join("examples").join(name)
}

/// For each block size: the names of the functions on each stack, with the number of blocks.
type Stacks = BTreeMap<u64, BTreeMap<Vec<String>, u64>>;

fn stacks(program: &Path) -> Stacks {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    succeed(command(program).arg(&file));
    let mut dump = dmd::analyze::read(&file).unwrap();
    dump.symbolize(&SymbolOptions::new());
    let names: Vec<Vec<String>> =
        dump.stacks().map(|stack| stack.map(|frame| frame.name().to_owned()).collect()).collect();
    let mut stacks = Stacks::new();
    for blocks in dump.blocks() {
        let stack = names[blocks.stack().expect("full stacks")].clone();
        *stacks.entry(blocks.requested()).or_default().entry(stack).or_default() += blocks.count();
    }
    stacks
}

#[test]
fn its_stacks_are_those_of_the_native_engine() {
    let native = stacks(&with_native_engine("deep"));
    let portable = stacks(&victim("deep"));
    // Only the program's own blocks: blocks of the runtime have other sizes.
    let (native, portable) = (native.range(10_000..), portable.range(10_000..));
    assert_eq!(native.clone().count(), 23, "{:?}", native.clone().map(|(size, _)| size).collect::<Vec<_>>());
    for ((size, native), (other, portable)) in native.zip(portable) {
        assert_eq!((size, native), (other, portable));
    }
}
