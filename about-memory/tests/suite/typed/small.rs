//! Small vectors, whose parts share memory by a union or by an enum, as a feature of their crate says.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recordings::stdout;
use crate::run::run;

/// The folder of the crate smallvec.
fn source() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = found["packages"].as_array().unwrap().iter();
    let package = packages.find(|package| package["name"] == "smallvec").unwrap();
    Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("src")
}

#[test]
fn small_vectors_hold_their_elements_in_both_forms() {
    let source = source().join("lib.rs");
    let victim = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/typed/tests/victims/small.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    for form in [&["--cfg", "feature=\"union\""][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let compile = |arguments: &[&str], source: &Path| {
            let mut compile = Command::new(&rustc);
            compile.args(["-Cdebuginfo=2", "--cap-lints=allow"]).args(arguments).arg(source);
            assert!(compile.current_dir(folder.path()).status().unwrap().success(), "{arguments:?}");
        };
        let library = ["--edition=2018", "--crate-type=rlib", "--crate-name=smallvec"];
        compile(&[&library, form].concat(), &source);
        compile(&["--edition=2024", "--extern=smallvec=libsmallvec.rlib"], &victim);
        let dump = folder.path().join("scan.json");
        let dump = dump.to_str().unwrap();
        let output = run(folder.path(), &["--mode", "scan", "-o", dump, "--", "./small"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let holders = |name: &str| -> Vec<(String, u64)> {
            let found: Value = serde_json::from_str(&stdout(&["why", dump, name, "--json"])).unwrap();
            let rows = found["holders"].as_array().unwrap_or_else(|| panic!("{found:#}")).iter();
            rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["blocks"].as_u64().unwrap()))
                .collect()
        };
        assert_eq!(
            holders("small::One"),
            [("small::Store.inline[]".to_owned(), 2), ("small::Store.again[]".to_owned(), 1)],
            "{form:?}"
        );
        assert_eq!(holders("small::Two"), [("[Box<small::Two>]".to_owned(), 5)], "{form:?}");
        assert_eq!(holders("[Box<small::Two>]"), [("small::Store.spilled".to_owned(), 1)], "{form:?}");
        let types: Value = serde_json::from_str(&stdout(&["types", dump, "--json"])).unwrap();
        assert_eq!((&types["wrongSizes"], &types["disagree"]), (&0.into(), &0.into()), "{types:#}");
    }
}
