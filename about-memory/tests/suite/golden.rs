//! Texts of Firefox, and our texts where we differ on purpose.

use std::fs;
use std::path::{Path, PathBuf};

use about_memory::PathFilter;
use memory_reporter::{ReportSet, file};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    // The package `light` has these tests, too.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let golden =
        folders.map(|folder| folder.join("about-memory/tests/golden")).find(|golden| golden.exists());
    golden.unwrap().join(name)
}

/// All inputs of a folder, each with the start of the names of its answers.
fn inputs(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let stem = name.strip_suffix(".json").or(name.strip_suffix(".json.gz"))?;
            (![".opts", ".b"].iter().any(|end| stem.ends_with(end))).then(|| (path.clone(), stem.to_owned()))
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    inputs
}

fn text(set: &ReportSet, options: &Value) -> String {
    let mut text = about_memory::text(set).verbose(options["verbose"] == true);
    if let Some(filter) = options["filter"].as_str() {
        text = text.filter(match options["regex"] == true {
            true => PathFilter::regex(filter).unwrap(),
            false => PathFilter::substring(filter),
        });
    }
    text.to_string()
}

/// The set of a case, a file or the diff of `NAME.a.json` (or `.gz`) and `NAME.b.json`, and the name of the case.
fn case<'s>(input: &Path, stem: &'s str) -> (ReportSet, &'s str) {
    let set = file::read(input).unwrap();
    match stem.strip_suffix(".a") {
        None => (set, stem),
        Some(name) => {
            let file_name = input.file_name().unwrap().to_str().unwrap();
            let second = file::read(input.with_file_name(file_name.replace(".a.json", ".b.json"))).unwrap();
            (about_memory::diff(&set, &second), name)
        }
    }
}

/// Removes the marks of merged chains in a diff, which Firefox loses.
fn without_marks_of_chains(text: &str) -> String {
    let strip = |line: &str| match line.split_once("── ") {
        Some((_, name)) if name.contains('/') => {
            line.trim_end_matches(" [+]").trim_end_matches(" [-]").to_owned()
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(strip).collect::<Vec<_>>().join("\n")
}

/// Removes the spaces that copying a page adds to the list of invalid values.
fn without_artefacts(text: &str) -> String {
    let mut in_list = false;
    text.split('\n')
        .map(|line| {
            in_list = (in_list || line.starts_with("WARNING: the following"))
                && !line.starts_with("This indicates");
            if in_list { line.trim() } else { line }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn text_is_that_of_firefox() {
    let folder = folder("firefox");
    for (input, stem) in inputs(&folder) {
        let (set, stem) = case(&input, &stem);
        // Its names need the feature `collation`, which the package `light` does not turn on.
        if stem == "sortnames" && env!("CARGO_PKG_NAME") == "light" {
            continue;
        }
        let options = fs::read_to_string(folder.join(format!("{stem}.opts.json")));
        let options = options.unwrap_or_else(|_| "[{}]".to_owned());
        for options in serde_json::from_str::<Vec<Value>>(&options).unwrap() {
            let suffix = options["suffix"].as_str().unwrap_or("");
            let dot = if suffix.is_empty() { "" } else { "." };
            let name = format!("{stem}{dot}{suffix}.expected.txt");
            let expected = fs::read_to_string(folder.join(&name)).unwrap();
            let (ours, expected) = (text(&set, &options), expected);
            let plain = |text: &str| without_marks_of_chains(&without_artefacts(text));
            pretty_eq(&name, &plain(&ours), &plain(&expected));
            if stem == "diff" {
                pretty_eq(&name, &ours, &expected);
            }
        }
    }
}

#[test]
fn deliberate_differences_are_as_documented() {
    let folder = folder("ours");
    for (input, stem) in inputs(&folder) {
        let (set, stem) = case(&input, &stem);
        for (suffix, verbose) in [("", false), (".verbose", true)] {
            let text = about_memory::text(&set).verbose(verbose).to_string();
            let path = folder.join(format!("{stem}{suffix}.expected.txt"));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(&path, &text).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            pretty_eq(&format!("{stem}{suffix}"), &text, &expected);
        }
    }
}

#[test]
fn a_file_of_firefox_is_written_back_as_it_was() {
    let set = file::read(folder("firefox").join("sample.json.gz")).unwrap();
    let mut written = Vec::new();
    file::write_to(&mut written, &set).unwrap();
    let mut original = String::new();
    let packed = fs::File::open(folder("firefox").join("sample.json.gz")).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(packed), &mut original).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert_eq!(written.lines().count(), original.lines().count());
    for (ours, original) in written.lines().zip(original.lines()) {
        // The sample escapes its dashes; both spellings are the same text.
        let member = |line: &str| {
            let member = line.trim_end_matches(',');
            serde_json::from_str::<Value>(&format!("{{{member}}}")).unwrap()
        };
        assert!(ours == original || member(ours) == member(original), "{ours}\n{original}");
    }
    assert!(written.ends_with('}') && original.ends_with('}'));
}

fn pretty_eq(name: &str, ours: &str, expected: &str) {
    for (i, (ours, expected)) in ours.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, expected, "{name}, line {}", i + 1);
    }
    assert_eq!(ours.lines().count(), expected.lines().count(), "{name}: number of lines");
    assert_eq!(ours.ends_with('\n'), expected.ends_with('\n'), "{name}: end");
}
