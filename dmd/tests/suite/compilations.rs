//! No shown stack contains frames of the engine or of its wrapper. The compilation of the program does not matter: any
//! debug information, optimization, number of code units and linking, incremental or not.
//!
//! If debug information has only lines, an inlined function has a name without a path.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use dmd::analyze::dark_matter::DarkMatter;
use dmd::analyze::program::{FoldRules, HeapSummary, HolderKey, ProgramOptions};
use dmd::analyze::symbolize::SymbolOptions;
use dmd::analyze::{Analysis, AnalyzeOptions, Dump, Suggestions};
use memory_reporter::file;

use crate::support::{build_folder, command, succeed};

const SOURCE: &str = include_str!("../victims/compiled.rs");

const TASKS: &str = include_str!("../victims/tasks.rs");

/// Whether to try all compilations.
fn all() -> bool {
    std::env::var_os("THOROUGH").is_some()
}

/// The libraries of a crate that are older than this test, the newest first. There is one library for each selection of
/// features. Newer libraries are left out, because another test may let cargo build a library at the same time.
fn libraries(name: &str) -> Vec<PathBuf> {
    let modified = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let linked = modified(&std::env::current_exe().unwrap());
    let start = format!("lib{name}-");
    let mut found: Vec<(SystemTime, PathBuf)> = fs::read_dir(build_folder().join("deps"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rlib"))
        .filter(|path| path.file_name().unwrap().to_str().is_some_and(|file| file.starts_with(&start)))
        .map(|path| (modified(&path), path))
        .filter(|(time, _)| *time <= linked)
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Compiles the program with the libraries from the build of this test.
struct Compiler {
    folder: tempfile::TempDir,
    dmd: PathBuf,
    memory_reporter: PathBuf,
}

impl Compiler {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("source")).unwrap();
        fs::write(folder.path().join("source/main.rs"), SOURCE).unwrap();
        let libraries_of_dmd = libraries("dmd");
        let mut errors = Vec::new();
        // Two libraries from different builds do not compile together.
        for dmd in libraries_of_dmd.iter().take(3) {
            for memory_reporter in libraries("memory_reporter") {
                let compiler =
                    Self { folder: tempfile::tempdir().unwrap(), dmd: dmd.clone(), memory_reporter };
                let output = compiler.rustc(&folder.path().join("source/main.rs"), &["--emit=metadata"]);
                match output.status.success() {
                    true => return Self { folder, ..compiler },
                    false => errors.push(String::from_utf8_lossy(&output.stderr).into_owned()),
                }
            }
        }
        panic!("{}", errors.join("\nother libraries:\n"))
    }

    fn rustc(&self, source: &Path, flags: &[&str]) -> std::process::Output {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut rustc = Command::new(rustc);
        rustc.args(["--edition=2024", "--crate-name=compiled", "-Clink-arg=-Wl,--build-id", "-L"]);
        rustc.arg(format!("dependency={}", build_folder().join("deps").display()));
        rustc.arg(format!("--extern=dmd={}", self.dmd.display()));
        rustc.arg(format!("--extern=memory_reporter={}", self.memory_reporter.display()));
        rustc.args(flags).arg(source).current_dir(self.folder.path()).output().unwrap()
    }

    fn check(&self, debug: &str, flags: &[&str]) {
        let with_debug = format!("-Cdebuginfo={debug}");
        let flags = [&[&*with_debug], flags].concat();
        let output = self.rustc(Path::new("source/main.rs"), &flags);
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        let has_inlined = !["0", "line-directives-only"].contains(&debug);
        check(&self.folder.path().join("compiled"), has_inlined, &flags.join(" "));
    }
}

/// Runs a program, and checks that all readers find the functions that allocated its blocks.
fn check(program: &Path, has_inlined: bool, how: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (path, report) = (folder.path().join("dump.json"), folder.path().join("report.json"));
    let options = "--mode=dark-matter --stacks=full --quiet";
    let output = succeed(command(program).env("DMD", options).arg(&path).arg(&report));
    let inlined = if has_inlined { "compiled::inlined" } else { "compiled::around" };
    let expected = [
        (600_001, inlined),
        (700_001, "compiled::allocate"),
        (800_001, "compiled::allocate_zeroed"),
        (900_001, "compiled::reallocate"),
    ];

    // In the process: the stacks of blocks, and the rows of a collection.
    let printed = String::from_utf8(output.stdout).unwrap();
    for (line, (bytes, _)) in printed.lines().zip(expected) {
        let first = line.strip_prefix(&format!("{bytes} ")).unwrap_or_else(|| panic!("{how}: {printed}"));
        assert!(!is_of_engine(first), "{how}: {printed}");
    }
    let reports = file::read(&report).unwrap();
    let unclassified = |name: &str| -> Vec<(String, i64)> {
        let of_name = reports.iter().filter(|report| {
            let below = report.path.strip_prefix("explicit/heap-unclassified/");
            below.is_some_and(|below| below.ends_with(name))
        });
        of_name.map(|report| (report.path.to_owned(), report.amount)).collect()
    };
    for (bytes, function) in expected {
        let rows = unclassified(&format!("/{function}"));
        let sum: i64 = rows.iter().map(|(_, bytes)| bytes).sum();
        assert!((bytes..bytes + 5000).contains(&sum), "{how}: {function} {rows:?} of {:?}", unclassified(""));
        assert!(
            rows.iter().all(|(path, _)| path.starts_with("explicit/heap-unclassified/compiled/")),
            "{how}: {rows:?}"
        );
    }
    let rest = unclassified("(rest)");
    assert!(rest.iter().all(|(_, bytes)| *bytes >= 0), "{how}: {rest:?}");

    // This closure reads the dump anew for each reader that takes ownership of it.
    let dump = || -> Dump {
        let mut dump = dmd::analyze::read(&path).unwrap();
        dump.symbolize(&SymbolOptions::new());
        dump
    };
    let symbolized = dump();
    for (bytes, function) in expected {
        let blocks = symbolized.blocks().find(|blocks| blocks.requested() == bytes as u64).unwrap();
        let frames: Vec<_> = symbolized.stack(blocks.stack().unwrap()).collect();
        let folds = FoldRules::new();
        let site = frames.iter().find(|frame| folds.reason(frame).is_none()).unwrap();
        assert_eq!(site.name(), function, "{how}: {frames:#?}");
        assert_eq!(site.crate_name(), "compiled", "{how}: {site:?}");
        let not_of_allocator = frames.iter().find(|frame| !frame.is_of_allocator()).unwrap();
        assert!(!is_of_engine(not_of_allocator.name()), "{how}: {not_of_allocator:?}");
        let mut rows = DarkMatter::new();
        rows.add_frames(&frames, &folds);
    }
    let analysis =
        Analysis::new(dump(), &AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).types(true));
    let summary = HeapSummary::new(&analysis, &ProgramOptions::new());
    for table in &summary.tables {
        let names: Vec<&str> = table.rows.iter().map(|row| &*row.name).collect();
        assert!(!names.iter().any(|name| is_of_engine(name)), "{how}: {names:?}");
        match table.by {
            HolderKey::Crate => assert_eq!(names[0], "compiled", "{how}: {names:?}"),
            HolderKey::Site => {
                for (_, function) in expected {
                    assert!(names.contains(&function), "{how}: {function} in {names:?}");
                }
            }
            _ => {}
        }
    }
    let suggestions = Suggestions::new(dump(), 10).unwrap();
    let functions: Vec<&str> =
        suggestions.suggestions.iter().flat_map(|one| &one.sites).map(|site| &*site.function).collect();
    for (_, function) in expected {
        assert!(functions.contains(&function), "{how}: {function} in {functions:?}");
    }
    assert!(!functions.iter().any(|name| is_of_engine(name)), "{how}: {functions:?}");
    let text = Analysis::new(dump(), &AnalyzeOptions::new().fold(true)).text(&[]).to_string();
    assert!(!text.contains("recorder.rs") && !text.contains("global_alloc.rs"), "{how}: {text}");
}

/// Whether a name belongs to a function of the engine, its wrapper or the declared allocator, or to their source
/// files.
fn is_of_engine(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap();
    let last = last.split('<').next().unwrap();
    ["record", "new_block", "guarded", "alloc", "alloc_zeroed", "realloc"].contains(&last)
        || last.ends_with("_recorded")
        || name.ends_with(".rs")
        || name.starts_with("dmd::")
        || name.contains("GlobalAlloc")
}

#[test]
fn of_a_program_with_the_libraries_of_this_build() {
    let compiler = Compiler::new();
    let (incremental, at_once, units) =
        (["-Cincremental=state"], ["-Ccodegen-units=1"], ["-Ccodegen-units=16"]);
    let some: &[(&str, &str, &[&str])] = &[
        ("line-tables-only", "0", &incremental),
        ("line-tables-only", "1", &incremental),
        ("line-tables-only", "3", &at_once),
        ("0", "2", &units),
        ("full", "1", &["-Ccodegen-units=16", "-Csymbol-mangling-version=v0"]),
    ];
    for (debug, optimization, flags) in some {
        let optimization = format!("-Copt-level={optimization}");
        compiler.check(debug, &[&[&*optimization], *flags].concat());
    }
    if !all() {
        return;
    }
    for debug in ["0", "line-tables-only", "line-directives-only", "limited", "full"] {
        for optimization in ["0", "1", "2", "3"] {
            for flags in [incremental, at_once, units] {
                let optimization = format!("-Copt-level={optimization}");
                for mangling in [&[][..], &["-Csymbol-mangling-version=v0"][..]] {
                    compiler.check(debug, &[&[&*optimization, flags[0]], mangling].concat());
                }
            }
        }
    }
}

/// Debug information with only lines has no path of an inlined function, and one name for all async functions.
#[test]
fn async_functions_have_their_names() {
    let compiler = Compiler::new();
    let source = compiler.folder.path().join("tasks/main.rs");
    fs::create_dir(source.parent().unwrap()).unwrap();
    fs::write(&source, TASKS).unwrap();
    let builds: &[&[&str]] = &[
        &["-Cdebuginfo=line-tables-only", "-Copt-level=3"],
        &["-Cdebuginfo=line-tables-only", "-Copt-level=0"],
        &["-Cdebuginfo=line-tables-only", "-Copt-level=0", "-Csymbol-mangling-version=v0"],
        &["-Cdebuginfo=full", "-Copt-level=3"],
    ];
    for flags in builds {
        let output = compiler.rustc(&source, flags);
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        let path = compiler.folder.path().join("dump.json");
        let program = compiler.folder.path().join("compiled");
        succeed(command(&program).env("DMD", "--mode=live --stacks=full --quiet").arg(&path));
        let names = |sources: bool| -> Vec<String> {
            let mut dump = dmd::analyze::read(&path).unwrap();
            dump.symbolize(&SymbolOptions::new().sources(sources));
            let name = |bytes: u64| {
                let blocks = dump.blocks().find(|blocks| blocks.requested() == bytes).unwrap();
                let frames: Vec<_> = dump.stack(blocks.stack().unwrap()).collect();
                let folds = FoldRules::new();
                let site = frames.iter().find(|frame| folds.reason(frame).is_none()).unwrap();
                site.name().split('<').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("<")
            };
            [600_001, 700_001, 800_001].map(name).to_vec()
        };
        let expected = ["compiled::Store::first", "compiled::second", "compiled::main::{closure#0}"];
        let found: Vec<String> = names(true).iter().map(|name| name.replace(">::", "::")).collect();
        let found: Vec<String> =
            found.iter().map(|name| name.replace("{{closure}}", "{closure#0}")).collect();
        let same = found.iter().zip(expected).all(|(name, expected)| {
            // An implementation has a number in the namespaces of full debug information.
            *name == expected || *name == expected.replace("Store", "{impl#0}")
        });
        assert!(same, "{flags:?}: {found:?}");
        // The look-up does not read a source that changed after the build.
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        let changed = fs::File::options().append(true).open(&source).unwrap();
        changed.set_modified(later).unwrap();
        assert_eq!(names(true), names(false), "{flags:?}");
        changed.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
}

/// A package outside of the workspace with its own profiles, which also compile the engine.
#[test]
fn of_a_package_of_its_own() {
    if !all() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().unwrap();
    let mut manifest = format!(
        "[package]\nname = \"compiled\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\ndmd = {{ path = {package:?} }}\nmemory-reporter = {{ path = {:?} }}\n",
        root.join("reporter")
    );
    let profiles = [
        ("lines", "dev", "debug = \"line-tables-only\""),
        ("lines-optimized", "dev", "debug = \"line-tables-only\"\nopt-level = 1"),
        ("limited", "dev", "debug = \"limited\""),
        ("full", "dev", "debug = \"full\""),
        ("fast", "release", "debug = \"line-tables-only\""),
        ("thin", "release", "debug = \"line-tables-only\"\nlto = \"thin\""),
        ("fat", "release", "debug = \"line-tables-only\"\nlto = \"fat\"\ncodegen-units = 1"),
        ("fat-full", "release", "debug = \"full\"\nlto = \"fat\""),
        ("fat-none", "release", "debug = false\nlto = \"fat\""),
        ("plain", "release", "debug = false"),
    ];
    for (name, base, lines) in profiles {
        manifest.push_str(&format!("\n[profile.{name}]\ninherits = \"{base}\"\n{lines}\n"));
    }
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/main.rs"), SOURCE).unwrap();
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    for (name, _, lines) in profiles {
        let target = folder.path().join("target");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--profile", name]).current_dir(folder.path());
        assert!(cargo.env("CARGO_TARGET_DIR", &target).status().unwrap().success(), "{name}");
        check(&target.join(name).join("compiled"), !lines.contains("debug = false"), name);
        fs::remove_dir_all(target.join(name)).unwrap();
    }
}
