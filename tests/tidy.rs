//! Rules of the repository that the compiler does not check.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/guide.rs"]
mod guide;
#[path = "tidy/house.rs"]
mod house;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/page.rs"]
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn manifest(folder: &str) -> Table {
    read(format!("{folder}/Cargo.toml")).parse().unwrap()
}

fn members() -> Vec<String> {
    let workspace: Table = read("Cargo.toml").parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    members.iter().map(|member| member.as_str().unwrap().to_owned()).collect()
}

/// All files below a folder, if their names end with `end`. Leaves out build output.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if name != "target" && name != ".git" && name != "node_modules" {
                found.extend(files(&path, end));
            }
        } else if name.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// If a program depends on a crate by its path, the program's own build lints the crate. A denied lint would end that
/// build.
#[test]
fn the_manifest_denies_no_lint() {
    let workspace: Table = read("Cargo.toml").parse().unwrap();
    for (tool, lints) in workspace["workspace"]["lints"].as_table().unwrap() {
        for (lint, level) in lints.as_table().unwrap() {
            let level = level.get("level").unwrap_or(level);
            assert_eq!(level.as_str(), Some("warn"), "{tool}::{lint}");
        }
    }
}

#[test]
fn crates_depend_along_the_arrows_only() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("reporter-derive", [].as_slice()),
        ("reporter/model", &[]),
        ("reporter", &["memory-report", "memory-reporter-derive"]),
        ("reporter/heap-test", &["memory-report", "memory-reporter"]),
        ("reporter/tracing", &["memory-reporter"]),
        ("dmd", &["dmd-analyze", "dmd-format", "dmd-unwind", "memory-report", "memory-reporter"]),
        ("dmd/analyze", &["dmd-format", "memory-report"]),
        ("dmd/attach", &[]),
        ("dmd/format", &[]),
        ("dmd/preload", &["dmd-redirect", "memory-dmd"]),
        ("dmd/redirect", &[]),
        ("dmd/unwind", &[]),
        ("heap-graph", &["memory-report", "memory-reporter"]),
        ("heap-graph/typed", &["dmd-analyze", "heap-graph", "memory-report"]),
        (
            "about-memory",
            &[
                "memory-report",
                "memory-reporter",
                "dmd-analyze",
                "dmd-attach",
                "dmd-format",
                "dmd-redirect",
                "memory-dmd",
                "heap-graph",
                "memory-export",
                "typed-heap",
            ],
        ),
        ("about-memory/export", &["dmd-analyze", "heap-graph", "memory-report"]),
        ("about-memory/endpoint", &["memory-report", "memory-reporter", "memory-export", "dmd-analyze"]),
        ("examples", &["memory-reporter", "about-memory", "memory-dmd", "heap-graph"]),
        ("tests", &["allocators", "memory-reporter", "about-memory", "memory-dmd", "heap-graph"]),
        ("tests/allocators", &["memory-reporter"]),
        ("tests/foreign", &["allocators", "memory-reporter"]),
        ("tests/light", &[]),
        ("tests/processes", &["memory-reporter", "about-memory", "memory-dmd"]),
        ("tests/ui", &[]),
        (
            "benches",
            &[
                "memory-report",
                "memory-reporter",
                "memory-export",
                "about-memory",
                "memory-dmd",
                "dmd-format",
                "heap-graph",
                "tests",
                "typed-heap",
            ],
        ),
        ("benches/profilers", &["memory-dmd", "dmd-format"]),
        ("benches/sizing", &["memory-reporter", "tests"]),
    ]);
    let members = members();
    let ours: BTreeSet<String> =
        members.iter().map(|m| manifest(m)["package"]["name"].as_str().unwrap().to_owned()).collect();
    for member in &members {
        let allowed = allowed
            .get(member.as_str())
            .unwrap_or_else(|| panic!("{member}: add the crate to the list of arrows"));
        let manifest = manifest(member);
        // Dev-dependencies may go against an arrow: the tests of the derive use the crate for which it derives.
        let Some(dependencies) = manifest.get("dependencies").and_then(|table| table.as_table()) else {
            continue;
        };
        for name in dependencies.keys().filter(|name| ours.contains(*name)) {
            assert!(allowed.contains(&name.as_str()), "{member} must not depend on {name}");
        }
    }
}

/// Modules use each other only in one direction. This is checked separately for each folder.
#[test]
fn modules_have_no_cycles() {
    let mut found = BTreeSet::new();
    for member in members() {
        let src = root().join(&member).join("src");
        if !src.exists() {
            continue;
        }
        let arrows = arrows::of_crate(&src);
        for cycle in arrows::cycles(&arrows) {
            let names = cycle.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
            let inside = |(from, to): (&String, &String)| cycle.contains(from) && cycle.contains(to);
            for (from, tos) in &arrows {
                for (to, place) in tos.iter().filter(|(to, _)| inside((from, to))) {
                    println!("{member}: {from} -> {to} at {place}");
                }
            }
            found.insert(format!("{member}: {names}"));
        }
    }
    assert!(found.is_empty(), "{found:?}: see the arrows above");
}

/// The layers of each crate that has layers: a layer uses only layers before it.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "reporter",
        &[
            "docs",
            "small_sort",
            "platform",
            "process_lock",
            "allocator",
            "engine_abi",
            "measure",
            "reporting",
            "watching",
            "collect",
            "live",
            "start_up",
        ],
    ),
    (
        "dmd",
        &[
            "error",
            "options",
            "logarithm",
            "byte_sampler",
            "sampler",
            "system",
            "tables",
            "engine",
            "dump",
            "recording",
            "boundary",
            "unsupported",
            "leaks",
            "global_alloc",
        ],
    ),
    (
        "dmd/analyze",
        &[
            "error",
            "print",
            "dump",
            "kept",
            "recording",
            "names",
            "symbolize",
            "records",
            "firefox",
            "output",
            "coverage",
            "program",
            "engine",
        ],
    ),
];

#[test]
fn layers_use_only_those_before_them() {
    for (member, layers) in LAYERS {
        let arrows = arrows::of_crate(&root().join(member).join("src"));
        let place_of = |module: &str| {
            let place = layers.iter().position(|layer| *layer == module);
            place.unwrap_or_else(|| panic!("{member}: add {module} to LAYERS"))
        };
        for (from, tos) in arrows.iter().filter(|(module, _)| !module.contains("::")) {
            // A macro expands in the user's crate, so it uses names that `lib.rs` re-exports for it.
            for (to, line) in tos.iter().filter(|(to, _)| to.as_str() != "__private") {
                // Any other re-export of `lib.rs` would hide the layer that is used.
                assert!(arrows.contains_key(to), "{member}: {from} uses {to} of lib.rs at {line}");
                assert!(
                    place_of(to) < place_of(from),
                    "{member}: {from} uses {to}, a later layer, at {line}"
                );
            }
        }
        for layer in *layers {
            assert!(arrows.contains_key(*layer), "{member}: LAYERS contains {layer}, which is not a module");
        }
    }
}

#[test]
fn members_inherit_lints_edition_and_version() {
    for member in members() {
        let manifest = manifest(&member);
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{member}");
        for key in ["version", "edition", "rust-version", "license"] {
            assert_eq!(manifest["package"][key]["workspace"].as_bool(), Some(true), "{member}: {key}");
        }
    }
}

#[test]
fn sources_are_short() {
    for path in files(root(), ".rs") {
        let relative = path.strip_prefix(root()).unwrap();
        let is_test = relative.components().any(|part| part.as_os_str() == "tests");
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(is_test || lines <= 800, "{}: {lines} lines", relative.display());
    }
}

#[test]
fn unsafe_code_is_forbidden_or_named() {
    for (file, attribute) in [
        ("reporter-derive/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("about-memory/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("about-memory/src/main.rs", "#![forbid(unsafe_code)]"),
        ("reporter/model/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("reporter/src/lib.rs", "#![deny(unsafe_code)]"),
        ("reporter/heap-test/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("reporter/tracing/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("dmd/src/lib.rs", "#![deny(unsafe_code)]"),
        ("dmd/analyze/src/lib.rs", "#![deny(unsafe_code)]"),
        ("dmd/attach/src/lib.rs", "#![deny(unsafe_code)]"),
        ("dmd/format/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("dmd/unwind/src/lib.rs", "#![deny(unsafe_code)]"),
        ("heap-graph/src/lib.rs", "#![deny(unsafe_code)]"),
        ("heap-graph/typed/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("about-memory/export/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("about-memory/endpoint/src/lib.rs", "#![forbid(unsafe_code)]"),
    ] {
        assert!(read(file).contains(attribute), "{file}: {attribute}");
    }
}

#[test]
fn only_the_platform_module_names_an_operating_system() {
    for crate_folder in [
        "reporter",
        "reporter/model",
        "about-memory",
        "about-memory/endpoint",
        "about-memory/export",
        "dmd/format",
        "reporter-derive",
        "heap-graph",
    ] {
        for path in files(&root().join(crate_folder).join("src"), ".rs") {
            let relative = path.strip_prefix(root()).unwrap().display().to_string();
            if relative.starts_with(&format!("{crate_folder}/src/platform")) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for word in ["target_os", "libc::", "procfs::", "rustix::"] {
                assert!(!text.contains(word), "{relative}: {word}");
            }
        }
    }
}

/// Text of `top` and `watch` passes through one module, which escapes characters that deceive a reader. `npm run
/// check` checks the page in the same way, and `about-memory/tests/suite/hostile.rs` checks the output of all
/// commands.
#[test]
fn screens_make_lines_in_one_module() {
    let folder = root().join("about-memory/src/cli");
    for path in files(&folder, ".rs") {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        if name == "line.rs" || name.ends_with("shown.rs") {
            continue;
        }
        for word in
            ["Line::from(", "Line::raw(", "Line::styled(", "Span::", "Text::", "ListItem::", "Cell::from"]
        {
            assert!(!text.contains(word), "{name}: {word} may only be in cli/line.rs");
        }
    }
}

#[test]
fn the_guide_lists_every_feature() {
    let page = "docs/src/measuring.md";
    let text = read(page);
    let list = text.split("\n## Features of memory-reporter\n").nth(1).expect("a list of features");
    let manifest = manifest("reporter");
    for (feature, _) in manifest["features"].as_table().unwrap() {
        assert!(feature == "default" || list.contains(&format!("`{feature}`")), "{page}: {feature}");
    }
    assert!(read("README.md").contains("(docs/src/measuring.md#features-of-memory-reporter)"));
}

/// The advice about types of other crates names the features that measure these types.
#[test]
fn suggestions_know_every_feature_that_measures_a_crate() {
    let file = "dmd/analyze/src/coverage/suggest/crates.rs";
    let text = read(file);
    let (_, list) = text.split_once("const FEATURES: &[&str] = &[\n").expect("a list of features");
    let (list, _) = list.split_once("];").unwrap();
    let known: BTreeSet<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known: BTreeSet<String> = known.into_iter().map(|name| name.trim_matches('"').to_owned()).collect();
    let manifest = manifest("reporter");
    let not_crates = ["default", "derive", "gc-arena07", "gzip", "jemalloc07", "live", "mimalloc01", "serde"];
    let features = manifest["features"].as_table().unwrap().keys().cloned();
    let features: BTreeSet<String> = features.filter(|name| !not_crates.contains(&&**name)).collect();
    assert_eq!(known, features, "{file}");
    // The crates for which the documentation has code.
    let (_, list) = text.split_once("const OTHER_CRATES: &[&str] = &[\n").expect("a list of crates");
    let (list, _) = list.split_once("];").unwrap();
    let page = read("reporter/src/docs/other_crates.md");
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let name = name.trim_matches('"');
        let row = |name: &str| page.contains(&format!("\n# `{name}`\n"));
        assert!(row(name) || row(&name.replace('_', "-")), "{file}: {name}");
    }
    // The message about a type that is not measurable.
    let message = read("reporter/src/measure/malloc_size_of.rs");
    let (_, list) = message.split_once("its major version: ").unwrap();
    let named: BTreeSet<String> = list.split('"').next().unwrap().split(", ").map(str::to_owned).collect();
    assert_eq!(named, features, "the note of `MallocSizeOf` must name each of these features");
}

#[test]
fn the_readme_s_code_and_commands_are_real() {
    let readme = read("README.md");
    let example = read("examples/cache.rs");
    let code = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(example.ends_with(code), "the code of README.md is not the end of examples/cache.rs");
    assert!(readme.contains("\n./test "), "the test command");
    assert!(root().join("test").exists());
    // CI runs the same tests as a newcomer: neither has special settings.
    let ci = read(".ci/run");
    let commands: Vec<&str> = ci.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(commands, ["set -euo pipefail", "cd \"$(dirname \"$0\")/..\"", "exec ./test"]);
    let test = read("test");
    assert!(
        !test.contains("${CI") && !test.contains("CARGO_INCREMENTAL"),
        "./test must not depend on the environment of CI"
    );
    for line in readme.lines().filter(|line| line.starts_with("cargo run ")) {
        let mut words = line.split_whitespace();
        let example = words.by_ref().skip_while(|word| *word != "--example").nth(1).unwrap();
        let manifest = manifest("examples");
        let known = manifest["example"].as_array().unwrap();
        assert!(known.iter().any(|entry| entry["name"].as_str() == Some(example)), "README.md: {example}");
    }
}

#[test]
fn every_crate_s_root_says_what_it_is() {
    for member in members() {
        for file in ["src/lib.rs", "support/lib.rs"] {
            let path = root().join(&member).join(file);
            if let Ok(text) = fs::read_to_string(&path) {
                assert!(text.starts_with("//! "), "{member}/{file} has no crate doc");
            }
        }
    }
}

#[test]
fn every_compile_fail_case_has_its_message() {
    let ui = root().join("tests/ui");
    let mut cases = files(&ui, ".rs");
    cases.retain(|case| case.parent() != Some(&ui)); // the test that compiles the cases
    assert!(cases.len() > 40);
    for case in &cases {
        assert!(case.with_extension("stderr").exists(), "{}: no message", case.display());
    }
    assert_eq!(cases.len(), files(&ui, ".stderr").len(), "each message must have its case");
}
