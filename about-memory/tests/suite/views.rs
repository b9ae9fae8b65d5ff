//! Options of a text: depth, threshold, order, units, processes.

use about_memory::{ByteUnits, EntrySort, text};
use memory_reporter::{
    Collection, Kind, MemoryReporter, Report, ReportSet, Reports, Units,
    memory_report::{Warning, WarningKind},
};

fn set() -> ReportSet {
    let mut set = ReportSet::new();
    for (process, path, amount) in [
        ("Main Process (pid 1)", "explicit/b/x/one", 5 << 20),
        ("Main Process (pid 1)", "explicit/b/x/two", 60 << 20),
        ("Main Process (pid 1)", "explicit/b/y", 15 << 20),
        ("Main Process (pid 1)", "explicit/a", 20 << 20),
        ("Main Process (pid 1)", "explicit/c", 1500),
        ("Main Process (pid 1)", "resident", 200 << 20),
        ("web (pid 2)", "resident", 3 << 30),
    ] {
        let kind = if path.starts_with("explicit/") { Kind::Heap } else { Kind::Other };
        set.push(Report { process, path, kind, units: Units::Bytes, amount, description: "" });
    }
    set
}

/// Returns the lines of the tree.
fn tree(text: &impl ToString) -> Vec<String> {
    let text = text.to_string();
    let lines = text.lines().skip_while(|line| !line.ends_with("-- explicit"));
    lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn depth_collapses_what_is_deeper() {
    let set = set();
    let text = text(&set).depth(1);
    assert_eq!(
        tree(&text),
        [
            "100.00 MB (100.0%) -- explicit",
            "├───80.00 MB (80.00%) ++ b",
            "├───20.00 MB (20.00%) ── a",
            "└────0.00 MB (00.00%) ── c",
        ]
    );
}

#[test]
fn threshold_is_what_is_tiny() {
    let set = set();
    assert_eq!(
        tree(&text(&set).threshold(30.0)),
        [
            "100.00 MB (100.0%) -- explicit",
            "├───80.00 MB (80.00%) -- b",
            "│   ├──65.00 MB (65.00%) -- x",
            "│   │  ├──60.00 MB (60.00%) ── two",
            "│   │  └───5.00 MB (05.00%) ── one",
            "│   └──15.00 MB (15.00%) ── y",
            "└───20.00 MB (20.00%) ++ (2 tiny)",
        ]
    );
    assert_eq!(tree(&text(&set).threshold(0.0).depth(1)).len(), 4);
}

#[test]
fn order_by_name_and_units() {
    let set = set();
    assert_eq!(
        tree(&text(&set).sort(EntrySort::Name).units(ByteUnits::Auto).depth(2)),
        [
            "100.00 MiB (100.0%) -- explicit",
            "├───20.00 MiB (20.00%) ── a",
            "├───80.00 MiB (80.00%) -- b",
            "│   ├──65.00 MiB (65.00%) ++ x",
            "│   └──15.00 MiB (15.00%) ── y",
            "└────1.46 KiB (00.00%) ── c",
        ]
    );
    let shown = text(&set).units(ByteUnits::GiB).to_string();
    assert!(shown.starts_with("Total resident memory (approximate) -- 3.20 GiB\n"), "{shown}");
}

#[test]
fn only_some_processes() {
    let set = set();
    let shown = text(&set).process("web").units(ByteUnits::Auto).to_string();
    assert_eq!(
        shown,
        "Total resident memory (approximate) -- 3.00 GiB\nweb (pid 2)\nOther Measurements\n\n\
         3.00 GiB ── resident\n\nEnd of web (pid 2)\n"
    );
    assert!(text(&set).process("nobody").to_string().ends_with("No results found.\n"));
}

#[test]
fn a_collection_of_some_reporters_warns_of_nothing() {
    struct Numbered;
    impl MemoryReporter for Numbered {
        fn collect_reports(&self, out: &mut Reports) {
            out.report("explicit/numbered", Kind::Heap, Units::Bytes, 7, "Seven bytes.");
        }
    }
    let set = Collection::new().with(&Numbered).collect();
    let shown = text(&set).to_string();
    assert!(shown.contains("explicit") && !shown.contains("WARNING"), "{shown}");
    let diff = about_memory::diff(&set, &Collection::new().collect());
    let diff = text(&diff).to_string();
    assert!(diff.contains("numbered [-]") && !diff.contains("WARNING"), "{diff}");
}

/// In a set of several processes, each warning names its process. Only a process whose program declares no allocator
/// has this warning.
#[test]
fn a_process_without_an_allocator_says_so() {
    for (process, expected) in [("Main Process (pid 1)", true), ("web (pid 2)", false)] {
        let mut set = set();
        let subject = format!("{process}: heap-allocated");
        set.warn(Warning::new(WarningKind::Unavailable, subject, String::new()));
        let text = text(&set).to_string();
        assert_eq!(text.contains("WARNING: the program declares no allocator."), expected, "{text}");
    }
}
