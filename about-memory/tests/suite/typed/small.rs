//! Small vectors, whose parts share memory by a union or by an enum, depending on a feature of their crate.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recordings::stdout;
use crate::run::run;

/// The source of the crate smallvec that this test is compiled with, from the compiler's notes beside the test.
fn source() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let notes = test.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let notes = notes.filter(|path| {
        path.extension() == Some("d".as_ref())
            && path.file_name().unwrap().to_string_lossy().starts_with("smallvec-")
    });
    let texts: Vec<_> = notes.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let sources =
        texts.iter().flat_map(|text| text.split_whitespace()).filter(|word| word.ends_with("src/lib.rs"));
    sources.map(PathBuf::from).find(|path| path.exists()).unwrap_or_else(|| panic!("{texts:?}"))
}

#[test]
fn small_vectors_hold_their_elements_in_both_forms() {
    let source = source();
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
