//! The part of the heap that reporters report.

use std::panic::catch_unwind;

use dmd_analyze::{Coverage, CoverageKey, Dump};

use super::{document, read};

const BLOCKS: &str = r#"
    {"req": 900, "alloc": "A", "reps": ["R"]}, {"req": 50, "alloc": "A"}, {"req": 16, "num": 2},
    {"req": 8, "slop": 8, "alloc": "A"}, {"req": 2, "alloc": "B", "reps": ["R", "R"]}"#;
const TABLES: &str = r##""traceTable": {"A": ["F"], "B": ["G"], "R": ["H"]},
    "frameTable": {"F": "#00: app::f (a.rs:1)", "G": "#00: lib::g (b.rs:1)", "H": "#00: app::r (r.rs:1)"},
    "reportPaths": [{"path": "explicit/a", "claimed": 900, "marked": 900},
        {"path": "explicit/b", "claimed": 1, "marked": 2},
        {"path": "explicit/textures", "claimed": 400000, "marked": 0}]"##;

fn dump() -> Dump {
    read(document("dark-matter", BLOCKS, TABLES)).unwrap()
}

#[test]
fn coverage_is_by_module_and_adds_up() {
    let coverage = Coverage::new(dump()).unwrap();
    assert_eq!(
        coverage.to_string(),
        "\
Coverage of 1,000 bytes in 6 blocks {
  Reported once:   90.00%              900 bytes in 1 block
  Reported twice:   0.20%                2 bytes in 1 block
  Not reported:     9.80%               98 bytes in 4 blocks
}

By module {
             bytes     once    twice      not
              ~998   90.18%    0.00%    9.82%  app
                 2    0.00%  100.00%    0.00%  lib
}

Reported by amount, blocks unknown {
  explicit/textures: 400,000 bytes
}

Partially reported: reporters whose amount differs from the blocks that they measured {
  explicit/b: reported 1, measured 2 bytes
}
"
    );
    let sum: i128 = coverage.modules.iter().map(|module| module.total().usable()).sum();
    assert_eq!(sum, coverage.total.usable());
    let live = read(document("live", BLOCKS, TABLES)).unwrap();
    assert_eq!(
        Coverage::new(live).unwrap_err().to_string(),
        "taken in mode live: only dumps of dark-matter mode have reports"
    );
}

#[test]
fn coverage_is_by_type_too() {
    const BLOCKS: &str = r#"
        {"req": 900, "alloc": "A", "reps": ["R"]}, {"req": 100, "alloc": "A"}, {"req": 24, "alloc": "B"}"#;
    const TABLES: &str = r##""traceTable": {"A": ["V", "F"], "B": ["F"], "R": ["H"]},
        "frameTable": {"F": "#00: app::f (a.rs:1)", "H": "#00: app::r (r.rs:1)",
            "V": "#00: <alloc::vec::Vec<app::Job>>::with_capacity (/rustc/0/library/alloc/src/vec/mod.rs:1)"}"##;
    let dump = || read(document("dark-matter", BLOCKS, TABLES)).unwrap();
    let coverage = Coverage::by(dump(), CoverageKey::Type).unwrap();
    assert_eq!(
        coverage.to_string().split_once("\n\n").unwrap().1,
        "\
By type {
             bytes     once    twice      not
             1,000   90.00%    0.00%   10.00%  [app::Job], or a type of the same layout
                24    0.00%    0.00%  100.00%  in app::f
}
"
    );
    // In the table by crate, memory that a library allocates counts for its caller.
    let of_crate = Coverage::new(dump()).unwrap();
    assert_eq!(of_crate.modules.iter().map(|module| &*module.name).collect::<Vec<_>>(), ["app"]);
}

#[test]
fn a_test_can_ask_for_coverage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.json");
    std::fs::write(&path, document("dark-matter", BLOCKS, TABLES)).unwrap();
    dmd_analyze::assert_coverage!(path, >= 90 %, twice <= 0.2 %);
    let message = |run: &(dyn Fn() + std::panic::RefUnwindSafe)| {
        *catch_unwind(run).unwrap_err().downcast::<String>().unwrap()
    };
    let less = message(&|| dmd_analyze::assert_coverage!(path, >= 90.3 %, twice <= 1 %));
    assert!(
        less.starts_with("90.20% of the heap is reported, expected at least 90.3%\n\nCoverage of"),
        "{less}"
    );
    let twice = message(&|| dmd_analyze::assert_coverage!(path, >= 90 %));
    assert!(twice.starts_with("0.20% of the heap is reported twice, expected at most 0%\n\n"), "{twice}");
    let absent = message(&|| dmd_analyze::assert_coverage!(folder.path().join("x"), >= 90 %));
    assert!(absent.ends_with("x: not found"), "{absent}");
}
