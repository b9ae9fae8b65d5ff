//! Symbols of a small library that the tests compile, for dumps with and without a build id.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dmd_analyze::symbolize::SymbolOptions;
use dmd_analyze::{Analysis, AnalyzeOptions, Dump};
use object::{Object as _, ObjectSymbol as _};

use super::{document, read};

pub(super) const SOURCE: &str = r#"
#![crate_type = "cdylib"]
#[inline(always)]
fn inner(x: u64) -> u64 {
    std::hint::black_box(x) + 1
}
#[unsafe(no_mangle)]
pub extern "C" fn outer(x: u64) -> u64 {
    inner(x)
}
"#;

pub(super) fn compile(folder: &Path, source: &str, flags: &[&str]) -> PathBuf {
    fs::write(folder.join("small.rs"), source).unwrap();
    let library = folder.join("libsmall.so");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "-Copt-level=1", "-Clink-arg=-Wl,--build-id"])
        .args(flags)
        .arg("-o")
        .arg(&library)
        .arg("small.rs")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

pub(super) struct Library {
    pub(super) path: PathBuf,
    pub(super) build_id: String,
    pub(super) outer: u64,
}

impl Library {
    pub(super) fn at(path: PathBuf) -> Self {
        let bytes = fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let id = file.build_id().unwrap().unwrap_or_default();
        let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap();
        let build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { path, build_id, outer: symbol.address() }
    }

    /// A dump with one stack: the function's start, and a place without a symbol.
    pub(super) fn dump(&self, build_id: &str) -> Dump {
        self.dump_of(build_id, &[self.outer, 0xffff_fff0])
    }

    pub(super) fn dump_of(&self, build_id: &str, offsets: &[u64]) -> Dump {
        let path = self.path.display();
        let frames: Vec<String> = offsets
            .iter()
            .map(|offset| format!("\"F{offset:x}\": \"#00: ???[{path} +0x{offset:x}]\""))
            .collect();
        let stack: Vec<String> = offsets.iter().map(|offset| format!("\"F{offset:x}\"")).collect();
        let tables = format!(
            "\"traceTable\": {{\"A\": [{}]}}, \"frameTable\": {{{}}}, \
             \"modules\": [{{\"path\": \"{path}\", \"buildId\": \"{build_id}\"}}]",
            stack.join(", "),
            frames.join(", ")
        );
        read(document("live", r#"{"req": 8, "alloc": "A"}"#, &tables)).unwrap()
    }
}

pub(super) fn frames(dump: Dump) -> Vec<String> {
    let text = Analysis::new(dump, &AnalyzeOptions::new()).text(&[]).to_string();
    text.lines().filter_map(|line| line.strip_prefix("    #")).map(|line| line[4..].to_owned()).collect()
}

pub(super) fn notes(dump: &mut Dump, options: &SymbolOptions) -> Vec<String> {
    dump.symbolize(options).iter().map(ToString::to_string).collect()
}

#[test]
fn notes_about_the_engine_s_library_are_known() {
    for (name, is_of_engine) in [("libdmd.so", true), ("libdmd.so.1", false), ("libapp.so", false)] {
        let tables = format!(
            r##""traceTable": {{"A": ["F"]}}, "frameTable": {{"F": "#00: ???[/nowhere/{name} +0x10]"}},
            "modules": [{{"path": "/nowhere/{name}", "buildId": ""}}]"##
        );
        let mut dump = read(document("live", r#"{"req": 8, "alloc": "A"}"#, &tables)).unwrap();
        let notes = dump.symbolize(&SymbolOptions::new());
        assert_eq!(
            notes.iter().map(|note| note.is_of_engine()).collect::<Vec<_>>(),
            [is_of_engine],
            "{name}"
        );
    }
}

#[test]
fn inlined_calls_get_frames_with_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile(folder.path(), SOURCE, &["-g"]));
    let path = library.path.display().to_string();
    let mut dump = library.dump(&library.build_id);
    let said = notes(&mut dump, &SymbolOptions::new());
    assert_eq!(said, [format!("{path}: 1 frame without symbols")]);
    assert_eq!(frames(dump).last().unwrap(), &format!("???[{path} +0xfffffff0]"));

    let all: Vec<u64> = (0..24).map(|byte| library.outer + byte).collect();
    let mut dump = library.dump_of(&library.build_id, &all);
    dump.symbolize(&SymbolOptions::new());
    let calls: Vec<_> = dump.stacks().next().unwrap().collect();
    let at = calls.iter().position(|frame| frame.inlined && frame.name().ends_with("inner")).unwrap();
    let (inlined, caller) = (calls[at], calls[at + 1]);
    assert!(inlined.line.is_some() && inlined.column.is_some());
    assert!(caller.name().ends_with("outer") && caller.line == Some(9) && !caller.inlined);
    assert_eq!(inlined.module, Some(&*path));
    assert_eq!((inlined.module, inlined.offset), (caller.module, caller.offset));
    let text = Analysis::new(dump, &AnalyzeOptions::new().max_frames(100)).text(&[]).to_string();
    let source = folder.path().join("small.rs");
    let line = |name: &str, line: u32| text.find(&format!("{name} ({}:{line})", source.display()));
    // `outer` has no caller, and calls `inner` in its second line.
    let inner = line("small::inner", 5).or(line("inner", 5)).unwrap_or_else(|| panic!("{text}"));
    let rest = &text[inner..];
    let next = rest.lines().nth(1).unwrap();
    assert!(next.ends_with(&format!("outer ({}:9)", source.display())), "{text}");
}

/// With debug information, each inlined function also has a mangled name. Without debug information, only the function
/// with a symbol has a mangled name.
#[test]
fn frames_keep_the_names_of_the_linker_on_request() {
    const MANGLED: &str = r#"
#![crate_type = "cdylib"]
pub struct List<T>(T);
impl List<u64> {
    #[inline(always)]
    fn inner(&self) -> u64 {
        std::hint::black_box(self.0) + 1
    }
    #[inline(never)]
    fn middle(&self) -> u64 {
        self.inner()
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn outer(x: u64) -> u64 {
    List(x).middle() + 1
}
"#;
    for (flags, has_lines) in
        [(&["-g", "-Csymbol-mangling-version=v0"], true), (&["-g", "-Cstrip=debuginfo"], false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(compile(folder.path(), MANGLED, flags));
        let bytes = fs::read(&library.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let of =
            |name: &str| file.symbols().find(|symbol| symbol.name().is_ok_and(|found| found.contains(name)));
        let middle = of("middle").unwrap();
        let mut found: BTreeSet<(String, Option<String>)> = BTreeSet::new();
        for keep in [true, false] {
            let all: Vec<u64> =
                (0..middle.size()).map(|byte| middle.address() + byte).chain([library.outer]).collect();
            let mut dump = library.dump_of(&library.build_id, &all);
            dump.symbolize(&SymbolOptions::new().system_names(keep));
            for frame in dump.stacks().next().unwrap() {
                assert!(keep || frame.system_name.is_none(), "{frame:?}");
                let ours = ["inner", "middle", "outer"].iter().any(|name| frame.name().contains(name));
                if keep && ours {
                    found.insert((frame.name().to_owned(), frame.system_name.map(str::to_owned)));
                }
            }
        }
        let system_name = |name: &str| {
            let mut found = found.iter().filter(|(readable, _)| readable.contains(name));
            let (first, more) = (found.next(), found.next());
            assert!(more.is_none(), "{found:?} {more:?}");
            first.map(|(_, system_name)| system_name.as_deref())
        };
        assert_eq!(system_name("middle"), Some(middle.name().ok()), "{found:?}");
        // A name that is not mangled equals the function's own name.
        assert_eq!(system_name("outer"), Some(None), "{found:?}");
        if has_lines {
            let inner = system_name("inner").flatten().unwrap();
            assert!(inner.starts_with("_R") && inner.contains("inner"), "{inner}");
        }
    }
}

#[test]
fn another_build_is_said_and_not_guessed_from() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile(folder.path(), SOURCE, &["-g"]));
    let path = library.path.display().to_string();
    let kept = folder.path().join("kept").join(".build-id").join(&library.build_id[..2]);
    fs::create_dir_all(&kept).unwrap();
    fs::copy(&library.path, kept.join(format!("{}.debug", &library.build_id[2..]))).unwrap();
    let debuginfod = folder.path().join("debuginfod");
    fs::create_dir_all(debuginfod.join(&library.build_id)).unwrap();
    fs::copy(&library.path, debuginfod.join(&library.build_id).join("debuginfo")).unwrap();

    let now = Library::at(compile(folder.path(), &SOURCE.replace("+ 1", "+ 77"), &["-g"]));
    assert_ne!(now.build_id, library.build_id);
    let as_they_are = |dump| frames(dump).iter().all(|frame| frame.starts_with("???["));
    let mut dump = library.dump(&library.build_id);
    assert_eq!(
        notes(&mut dump, &SymbolOptions::new()),
        [format!("{path}: changed since the dump (now build {}): 2 frames without symbols", now.build_id)]
    );
    assert!(as_they_are(dump));

    fs::remove_file(&library.path).unwrap();
    let mut dump = library.dump(&library.build_id);
    assert_eq!(
        notes(&mut dump, &SymbolOptions::new()),
        [format!("{path}: not found: 2 frames without symbols")]
    );
    assert!(as_they_are(dump));

    for kept in [folder.path().join("kept"), debuginfod] {
        let mut dump = library.dump(&library.build_id);
        assert_eq!(notes(&mut dump, &SymbolOptions::new().folder(kept)).len(), 1);
        assert!(frames(dump).iter().any(|frame| frame.starts_with("small::outer (")));
    }

    fs::write(&library.path, "no library").unwrap();
    let mut dump = library.dump(&library.build_id);
    assert_eq!(
        notes(&mut dump, &SymbolOptions::new()),
        [format!("{path}: not a program or library: 2 frames without symbols")]
    );
}

#[test]
fn without_a_build_id_in_the_dump_it_is_said_that_nothing_was_checked() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile(folder.path(), SOURCE, &["-g"]));
    let path = library.path.display().to_string();
    let mut dump = library.dump("");
    let said = notes(&mut dump, &SymbolOptions::new().threads(1));
    assert_eq!(said[0], format!("{path}: 2 frames looked up in the present file: the dump has no build id"));
    assert!(frames(dump).iter().any(|frame| frame.starts_with("small::outer (")));
}

#[test]
fn without_debug_information_functions_have_no_lines() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile(folder.path(), SOURCE, &["-Cdebuginfo=0", "-Cstrip=debuginfo"]));
    let path = library.path.display().to_string();
    let mut dump = library.dump(&library.build_id);
    notes(&mut dump, &SymbolOptions::new());
    assert_eq!(frames(dump)[0], format!("outer[{path} +0x{:x}]", library.outer));
}

#[test]
fn generic_functions_say_which_types_they_were_made_for() {
    const SOURCE: &str = r#"
#![crate_type = "cdylib"]
pub struct Entry(u64);
#[inline(never)]
fn store<T>(list: &mut Vec<T>, x: T) {
    list.push(x);
}
#[unsafe(no_mangle)]
pub extern "C" fn outer(x: u64) -> u64 {
    let mut list = std::hint::black_box(Vec::new());
    store(&mut list, Entry(x));
    std::hint::black_box(&list);
    list[0].0
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile(folder.path(), SOURCE, &["-g"]));
    let bytes = fs::read(&library.path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let store = file.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("store"))).unwrap();
    let mut dump = library.dump_of(&library.build_id, &[store.address()]);
    dump.symbolize(&SymbolOptions::new());
    let frames = frames(dump);
    assert!(frames.last().unwrap().starts_with("small::store<small::Entry> ("), "{frames:?}");
}

/// Debug information with only lines has neither the types nor the traits of methods. Symbols have both.
#[test]
fn methods_say_their_types_where_there_are_lines_only() {
    const SOURCE: &str = r#"
#![crate_type = "cdylib"]
pub struct Cache(Vec<u64>);
trait Store { fn store(&mut self, x: u64); }
impl Store for Cache {
    #[inline(never)]
    fn store(&mut self, x: u64) { self.0.push(std::hint::black_box(x)); }
}
impl Cache {
    #[inline(never)]
    fn fill<T: Into<u64>>(&mut self, x: T) { self.store(x.into()); self.0.push(std::hint::black_box(2)); }
    #[inline(never)]
    fn each(&mut self, f: impl Fn(u64)) { self.0.iter().for_each(|x| f(*x)); }
}
#[unsafe(no_mangle)]
pub extern "C" fn outer(x: u32) -> u64 {
    let mut cache = Cache(Vec::new());
    cache.fill(x);
    cache.each(#[inline(never)] |x| { std::hint::black_box(x); });
    cache.0[0]
}
"#;
    let cases: [(&[&str], _); 2] = [
        (
            &["-Cdebuginfo=line-tables-only"],
            [
                "<small::Cache as small::Store>::store (",
                "small::Cache::fill<u32> (",
                "small::outer::{closure",
            ],
        ),
        (
            &["-Cdebuginfo=line-tables-only", "-Csymbol-mangling-version=v0"],
            [
                "<small::Cache as small::Store>::store (",
                "<small::Cache>::fill::<u32> (",
                "small::outer::{closure",
            ],
        ),
    ];
    for (flags, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(compile(folder.path(), SOURCE, flags));
        let bytes = fs::read(&library.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        for (part, start) in ["store", "fill", "outer"].into_iter().zip(expected) {
            let is_it = |symbol: &object::Symbol<'_, '_>| {
                symbol.name().is_ok_and(|name| name.contains("small") && name.contains(part))
            };
            let symbols: Vec<_> = file.symbols().filter(is_it).collect();
            let names: Vec<String> = symbols
                .iter()
                .map(|symbol| {
                    let mut dump = library.dump_of(&library.build_id, &[symbol.address() + 1]);
                    dump.symbolize(&SymbolOptions::new());
                    frames(dump).pop().unwrap()
                })
                .collect();
            assert!(names.iter().any(|name| name.starts_with(start)), "{flags:?} {part}: {names:?}");
        }
    }
}

#[test]
fn an_inlined_function_of_a_crate_without_debug_information_has_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let inner = "
        use std::hint::black_box;
        fn step<T: Copy>(x: &T) -> T { black_box(*black_box(x)) }
        pub fn inner<T: Copy>(x: &T) -> T { step(&step(&step(&step(&step(&step(x)))))) }";
    file("deep-part/src/cells.rs", inner);
    file("deep-part/src/lib.rs", "pub mod cells;");
    file(
        "app/src/lib.rs",
        "#[unsafe(no_mangle)] pub extern \"C\" fn outer(x: u64) -> u64 { deep_part::cells::inner(&x) }",
    );
    let rustc = |arguments: &[&str]| {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(rustc);
        command.args(["--edition=2024", "-Copt-level=1"]).args(arguments).current_dir(folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let source = folder.path().join("deep-part/src/lib.rs");
    rustc(&["--crate-type=rlib", "--crate-name=deep_part", "-Cdebuginfo=0", source.to_str().unwrap()]);
    rustc(&[
        "--crate-type=cdylib",
        "--crate-name=app",
        "-Cdebuginfo=line-tables-only",
        "-Clink-arg=-Wl,--build-id",
        "--extern=deep_part=libdeep_part.rlib",
        "app/src/lib.rs",
    ]);
    let library = Library::at(folder.path().join("libapp.so"));
    let frames: Vec<String> = (0..64)
        .flat_map(|byte| {
            let mut dump = library.dump_of(&library.build_id, &[library.outer + byte]);
            dump.symbolize(&SymbolOptions::new().threads(1));
            frames(dump)
        })
        .collect();
    assert!(frames.iter().any(|frame| frame.starts_with("deep_part::cells::step<u64> (")), "{frames:?}");
}
