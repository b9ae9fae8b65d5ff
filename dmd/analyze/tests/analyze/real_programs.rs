//! The first screen about real programs: it must name the holders of the memory.
//!
//! `tests/data/real` has two files for each program: its dump, and debug information reduced to the places on the
//! dump's stacks. One file contains the debug information of all modules, so all modules have its build id. All
//! programs are release builds with `debug = "line-tables-only"`:
//!
//! - tantivy: a program that indexes 40 000 documents in memory.
//! - boa: a program that runs a script, which makes 90 000 objects, strings and a `Map`.
//! - jemalloc: a program that writes 300 000 values to the database fjall; its global allocator is `dmd::Dmd<Jemalloc>`.
//! - own: a program with every container of the standard library, trait objects, closures and recursive types.
//! - jsonp: a program with values of `serde_json`, a dictionary, regular expressions, and maps of indexmap and hashbrown.
//! - asyncp: a program of tokio, with 3000 tasks, channels and a concurrent map.
//! - synp: a program that keeps the syntax tree of a source file, by syn.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use dmd_analyze::program::{HeapOverview, HeapSummary, HolderKey, ProgramOptions};
use dmd_analyze::symbolize::SymbolOptions;
use dmd_analyze::{Analysis, AnalyzeOptions, Dump, DumpReadOptions};

use super::views::golden;

/// The number of lines of the default view in a golden text.
const LINES: usize = 60;

/// The number of records in the default view.
const RECORDS: usize = 10;

fn unpacked(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/real").join(file);
    let packed = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The dump of a program, with symbols.
fn dump(program: &str) -> Dump {
    let text = unpacked(&format!("{program}.json.gz"));
    let mut dump = dmd_analyze::read_from(&text[..], &DumpReadOptions::new()).unwrap();
    let symbols = tempfile::tempdir().unwrap();
    let id = build_id(&text);
    let folder = symbols.path().join(".build-id").join(&id[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{}.debug", &id[2..])), unpacked(&format!("{program}.debug.gz"))).unwrap();
    dump.symbolize(&SymbolOptions::new().folder(symbols.path()));
    assert!(dump.has_lines_of_program(), "{program}");
    dump
}

fn build_id(dump: &[u8]) -> String {
    let dump: serde_json::Value = serde_json::from_slice(dump).unwrap();
    dump["modules"][0]["buildId"].as_str().unwrap().to_owned()
}

/// The first output that a user sees.
struct Screens {
    summary: HeapSummary,
    /// The output of `about-memory run` when the program has ended.
    run: String,
    /// The output of `about-memory dmd`.
    view: String,
}

fn screens(program: &str) -> Screens {
    let dump = dump(program);
    let overview = HeapOverview::new(&dump, None);
    let dump = dump.at(overview.at).unwrap();
    let options = AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).estimate(true).types(true);
    let analysis = Analysis::new(dump, &options);
    let options = ProgramOptions::new();
    let summary = HeapSummary::new(&analysis, &options);
    let run = format!("{overview}{summary}");
    let view = format!("{overview}{}", analysis.program_text(RECORDS, &options));
    Screens { summary, run, view }
}

/// The percentages of the heap in the rows of the three tables: sites, types, crates. A row such as `in app::f` names a
/// function instead of a type, and does not count.
fn named(summary: &HeapSummary) -> [f64; 3] {
    [HolderKey::Site, HolderKey::Type, HolderKey::Crate].map(|by| {
        let table = summary.tables.iter().find(|table| table.by == by).unwrap();
        assert!(table.rows.len() <= 20, "a first screen has no room for {} rows", table.rows.len());
        if let [others @ .., _] = &table.rows[..]
            && others.len() >= 5
        {
            let bytes: i128 = others.iter().map(|row| row.sums.usable()).sum();
            assert!(bytes * 100 < summary.total.usable() * 80, "{} rows are enough", others.len());
        }
        let names = table.rows.iter().filter(|row| by != HolderKey::Type || !row.name.starts_with("in "));
        let bytes: i128 = names.map(|row| row.sums.usable()).sum();
        100.0 * bytes as f64 / summary.total.usable() as f64
    })
}

/// Checks the screens of a program against a golden text, and the percentages of sites, types and crates.
fn check(program: &str, least: [f64; 3]) {
    let Screens { summary, run, view } = screens(program);
    assert!(view.starts_with(&run), "the view starts with what `run` prints\n{run}\n{view}");
    let first: Vec<&str> = view.lines().take(LINES).collect();
    golden(&format!("real-{program}.txt"), &format!("{}\n", first.join("\n")));
    for line in first {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let named = named(&summary);
    assert!(named.iter().zip(least).all(|(named, least)| *named >= least), "{program}: {named:.2?}\n{run}");
}

#[test]
fn tantivy() {
    check("tantivy", [90.0, 95.0, 95.0]);
}

/// The memory without a type is in strings: the crate of the strings allocates untyped bytes.
#[test]
fn boa() {
    check("boa", [90.0, 75.0, 95.0]);
}

#[test]
fn own() {
    check("own", [80.0, 80.0, 95.0]);
}

#[test]
fn jsonp() {
    check("jsonp", [80.0, 75.0, 95.0]);
}

#[test]
fn asyncp() {
    check("asyncp", [80.0, 80.0, 95.0]);
}

#[test]
fn synp() {
    check("synp", [80.0, 80.0, 95.0]);
}

/// The memory without a type is in nodes of the skip list and in values of the database: the program allocates them as
/// untyped bytes.
#[test]
fn jemalloc() {
    check("jemalloc", [95.0, 8.0, 95.0]);
}
