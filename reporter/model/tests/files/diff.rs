//! Differences between two sets, name by name.

use memory_report::diff::{Diff, Presence};
use memory_report::{Kind, Report, ReportSet, Units};

fn set(reports: &[(&str, &str, Kind, Units, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    for &(process, path, kind, units, amount) in reports {
        set.push(Report { process, path, kind, units, amount, description: "" });
    }
    set
}

fn diff<'a>(first: &'a ReportSet, second: &'a ReportSet) -> Diff<'a> {
    let path_name = |path: &'a str| path.split(':').next().unwrap_or(path).into();
    Diff::new(first, second, path_name, |process| process.replace(char::is_numeric, "N"))
}

use Kind::{Heap, NonHeap, Other};
use Units::{Bytes, Count};

#[test]
fn names_are_matched_after_renaming() {
    let first =
        set(&[("p1", "a:1", Heap, Bytes, 5), ("p2", "a:2", Heap, Bytes, 6), ("q", "b", Other, Count, 1)]);
    let second = set(&[("q", "c", Other, Bytes, 0), ("p7", "a", Heap, Bytes, 20)]);
    let diff = diff(&first, &second);
    let changes: Vec<_> =
        diff.changes().map(|c| (diff.process(c), &*c.path, c.first(), c.second(), c.presence())).collect();
    assert_eq!(
        changes,
        [
            ("pN", "a", Some(11), Some(20), Presence::Both),
            ("q", "b", Some(1), None, Presence::FirstOnly),
            ("q", "c", None, Some(0), Presence::SecondOnly),
        ]
    );
    let set = diff.to_set();
    assert!(set.is_diff());
    // A name that was reported twice occurs twice. A change of 0 does not occur.
    let reports: Vec<_> = set.iter().map(|r| (r.path, r.amount)).collect();
    assert_eq!(reports, [("a", 9), ("a", 0), ("b", -1)]);
    let presences: Vec<_> = (0..set.len()).map(|i| set.presence(i).unwrap()).collect();
    assert_eq!(presences, [Presence::Both, Presence::Both, Presence::FirstOnly]);
}

#[test]
fn what_does_not_fit_is_told() {
    let first = set(&[("p", "units", Other, Bytes, 5), ("p", "kinds", NonHeap, Bytes, 5)]);
    let second = set(&[
        ("p", "units", Other, Count, 5),
        ("p", "kinds", Heap, Bytes, 7),
        ("p", "kinds", NonHeap, Bytes, 6),
    ]);
    let diff = diff(&first, &second);
    let changes: Vec<_> = diff.changes().map(|c| (&*c.path, c.kind, c.amount())).collect();
    assert_eq!(changes, [("kinds", NonHeap, 1), ("kinds", Heap, 7)]);
    let warnings: Vec<_> = diff.to_set().warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["units: reported in BYTES and in COUNT", "kinds: reported as NONHEAP and as HEAP"]);
}

#[test]
fn many_misfits_are_counted() {
    let paths: Vec<_> = (0..1500).map(|i| format!("n{i}")).collect();
    let all = |units| -> Vec<_> { paths.iter().map(|path| ("p", path.as_str(), Other, units, 1)).collect() };
    let (first, second) = (set(&all(Bytes)), set(&all(Count)));
    let set = diff(&first, &second).to_set();
    assert_eq!(set.warnings().len(), 1001);
    assert_eq!(set.warnings()[1000].to_string(), "diff: 500 more names do not match");
    assert!(set.is_empty());
}

#[test]
fn an_unnamed_process_has_the_name_of_this_one() {
    let (first, second) = (set(&[("", "a", Other, Count, 1)]), set(&[]));
    let diff = diff(&first, &second);
    let process = diff.changes().map(|change| diff.process(change)).next();
    assert!(process.unwrap().starts_with("Main Process (pid N"), "{process:?}");
}

#[test]
fn usable_sizes_in_one_set_only_are_told() {
    let first = set(&[]);
    let mut second = set(&[]);
    second.set_usable_size_known(false);
    let set = diff(&first, &second).to_set();
    assert!(!set.usable_size_known());
    assert_eq!(
        set.warnings()[0].to_string(),
        "hasMozMallocUsableSize: true in one set only: sizes are not comparable"
    );
}
