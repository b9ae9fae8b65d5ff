//! Reports that break a rule, and values with a wrong size: each becomes a warning.

use std::collections::{BTreeMap, HashMap, LinkedList};
use std::rc::Rc;

use memory_reporter::{
    CollectOptions, Collection, Kind, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reading, ReportSet,
    Reports, Units, collect_report, collect_reports, computed_size_of, malloc_size_of, measure::size_summary,
    memory_report::WarningKind, register_strong, size_tree,
};

use super::{By, alone, amounts, warnings};

fn of(collect: impl Fn(&mut Reports)) -> ReportSet {
    let reporter = By(|| "by", collect);
    Collection::new().with(&reporter as &dyn MemoryReporter).collect()
}

#[test]
fn a_path_that_only_looks_like_the_tree_is_kept_with_a_warning() {
    let set = of(|out| {
        for path in ["Explicit/x", "EXPLICIT/x", r"explicit\x", "EXPLICIT", "explicitly/x", "my/explicit/x"] {
            out.report(path, Kind::Other, Units::Bytes, 1, "An amount of it.");
        }
    });
    assert_eq!(set.len(), 6);
    let fault = "the path looks like a path of the tree `explicit`, but is not: write `explicit/`, in lower case and with `/`";
    let texts: Vec<_> = set.warnings().iter().map(ToString::to_string).collect();
    let expected = ["Explicit/x", "EXPLICIT/x", r"explicit\\x", "EXPLICIT"];
    assert_eq!(texts, expected.map(|path| format!("by: `{path}`: {fault}")));
}

#[test]
fn heap_and_mappings_outside_of_the_tree_are_other() {
    let set = of(|out| {
        out.report("entries", Kind::Heap, Units::Bytes, 1, "An amount of it.");
        out.report("mapped", Kind::NonHeap, Units::Bytes, 1, "An amount of it.");
        out.report("counted", Kind::Other, Units::Count, 1, "An amount of it.");
        // These methods choose the kind themselves.
        out.heap("measured", &vec![1_u8; 9], "Memory of it.");
        out.heap_tree("parts", &vec![1_u8; 9], 2, "Memory of it.");
        out.mapped("file", b"bytes", "Memory of it.");
    });
    assert_eq!(set.len(), if cfg!(target_os = "linux") { 6 } else { 5 });
    let fault =
        "a report outside of `explicit/` must be of kind Other: only that tree adds up heap and mappings";
    let kept = warnings(&set, "by").into_iter().filter(|(kind, _)| *kind == WarningKind::ReportKept);
    let texts: Vec<_> = kept.map(|(_, message)| message.to_owned()).collect();
    assert_eq!(texts, ["entries", "mapped"].map(|path| format!("`{path}`: {fault}")));
    let others = set.iter().filter(|report| report.kind == Kind::Other).map(|report| report.path);
    assert!(["measured", "parts"].iter().all(|path| others.clone().any(|other| other == *path)));
}

#[test]
fn a_program_cannot_add_to_the_rows_of_the_process() {
    let _alone = alone();
    let adds = || {
        By(
            || "adds",
            |out: &mut Reports| {
                for path in ["heap-allocated", "resident", "resident-of-mine"] {
                    out.report(path, Kind::Other, Units::Bytes, 1 << 50, "An amount of it.");
                }
            },
        )
    };
    let registration = register_strong(std::sync::Arc::new(adds()));
    let of_all = collect_reports(&CollectOptions::new());
    drop(registration);
    let of_some = Collection::new().with_process().with(&adds()).collect();
    for set in [of_all, of_some] {
        assert!(amounts(&set)["heap-allocated"] < 1 << 40);
        assert_eq!(amounts(&set)["resident-of-mine"], 1 << 50);
        let dropped = warnings(&set, "adds");
        let taken = ["heap-allocated", "resident"];
        // Some systems do not provide the resident memory.
        let taken = &taken[..if cfg!(target_os = "linux") { 2 } else { 1 }];
        assert_eq!(dropped.len(), taken.len());
        for ((kind, message), path) in dropped.iter().zip(taken) {
            assert_eq!(*kind, WarningKind::ReportDropped);
            assert!(message.starts_with(&format!("`{path}`: the process already has a row of this name")));
        }
    }
    // Without the rows of the process, a reporter may use their paths.
    let alone = Collection::new().with(&adds()).collect();
    assert_eq!((alone.len(), alone.warnings().len()), (3, 0));
}

/// Returns this number of bytes, although the process does not have them.
struct Lies(usize);

impl MallocSizeOf for Lies {
    fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        self.0
    }
}

fn readings<T: MallocSizeOf + ?Sized>(value: &T) {
    let _ = (computed_size_of(value), malloc_size_of(value), size_summary(value), size_tree(value).total());
    let set = of(|out| {
        out.heap("explicit/lies", value, "Memory of it.");
        out.heap_tree("explicit/parts", value, 3, "Memory of it.");
        out.heap("outside", value, "Memory of it.");
        collect_report!(out, "explicit/truth", Heap, &vec![1_u8; 100], "Memory of it.");
    });
    assert!(amounts(&set)["explicit/truth"] >= 100);
    assert!(amounts(&set)["explicit/lies"] >= 1 << 40, "{:?}", amounts(&set));
    let cut = warnings(&set, "by");
    assert_eq!(cut.len(), 3, "{cut:?}");
    for (kind, message) in cut {
        assert_eq!(kind, WarningKind::ReportKept);
        assert!(message.ends_with("returns more bytes than a process can have; the amount is cut off"));
    }
}

#[test]
fn sums_of_lies_do_not_overflow() {
    for lie in [usize::MAX, usize::MAX / 2, 1 << 62] {
        let lies = || (0..300_u64).map(|_| Lies(lie));
        readings(&Lies(lie));
        readings(&lies().collect::<Vec<_>>());
        readings(&lies().collect::<Vec<_>>().into_boxed_slice());
        readings(&lies().map(Box::new).collect::<Vec<_>>());
        readings(&lies().map(Box::new).collect::<LinkedList<_>>());
        assert!(computed_size_of(&lies().map(Rc::new).collect::<Vec<_>>()) >= 1 << 40);
        readings(&lies().enumerate().collect::<HashMap<_, _>>());
        readings(&lies().enumerate().collect::<BTreeMap<_, _>>());
        readings(&(Lies(lie), [Lies(lie), Lies(lie)], Some(Lies(lie)), vec![Lies(lie)]));
    }
}
