//! The amounts in trees.

use memory_report::tree::{Forest, ITSELF};
use memory_report::{Kind, Report, ReportSet, Units};

fn set(reports: &[(&str, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    for &(path, amount) in reports {
        let kind = if path.starts_with("explicit/") { Kind::Heap } else { Kind::Other };
        set.push(Report { process: "p", path, kind, units: Units::Bytes, amount, description: path });
    }
    set
}

#[test]
fn chains_are_one_node() {
    let set = set(&[("t/a/b/c", 1), ("t/a/b/d/e", 2), ("u/x/y", 3)]);
    let forest = Forest::new(&set);
    let process = &forest.processes()[0];
    let root = process.node("t").unwrap();
    let chain = root.children().next().unwrap();
    assert_eq!((chain.name(), chain.path(), chain.amount()), ("a/b", "t/a/b", 3));
    let mut names: Vec<_> = chain.children().map(|node| node.name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["c", "d/e"]);
    assert_eq!(process.node("u").unwrap().children().next().unwrap().name(), "x/y");
    for (path, amount) in [("t/a", 3), ("t/a/b", 3), ("t/a/b/d", 2), ("t/a/b/d/e", 2), ("u/x", 3)] {
        assert_eq!(forest.amount(path), Some(amount), "{path}");
    }
    for path in ["t/a/b/", "t/a/b/d/e/f", "t/a/bc", "t/", "v", "", "t/a/b/d/"] {
        assert_eq!(forest.amount(path), None, "{path}");
    }
}

#[test]
fn an_inner_node_keeps_its_own_amount() {
    let set = set(&[("t/a/b", 3), ("t/a", 5), ("t/a", 1), ("t/a!", 7)]);
    let forest = Forest::new(&set);
    assert_eq!(forest.amount("t"), Some(16));
    assert_eq!(forest.amount("t/a"), Some(9));
    assert_eq!(forest.amount(&format!("t/a/{ITSELF}")), Some(6));
    let itself = forest.processes()[0].node("t/a/(itself)").unwrap();
    assert_eq!((itself.name(), itself.reports(), itself.merged()), (ITSELF, 2, 2));
}

#[test]
fn all_reports_of_a_path_are_counted() {
    let set = set(&[("t/a", 0), ("t/a", 5), ("t/b", 1), ("t/b", -1), ("t/b", 4), ("n", 0), ("n", 1)]);
    let forest = Forest::new(&set);
    let process = &forest.processes()[0];
    let counts = |path: &str| process.node(path).map(|n| (n.amount(), n.reports(), n.merged()));
    assert_eq!(counts("t/a"), Some((5, 2, 0)));
    assert_eq!(counts("t/b"), Some((4, 3, 2)));
    assert_eq!(counts("n"), Some((1, 2, 0)));
    assert_eq!(process.node("t/a").unwrap().description(), Some("t/a"));
}

#[test]
fn heap_unclassified_is_signed_and_wide() {
    let min = i64::MIN;
    let set = set(&[("explicit/a", i64::MAX), ("explicit/b", i64::MAX), ("heap-allocated", min)]);
    let forest = Forest::new(&set);
    let max = i128::from(i64::MAX);
    assert_eq!(forest.amount("explicit/heap-unclassified"), Some(i128::from(min) - 2 * max));
    assert_eq!(forest.amount("explicit"), Some(i128::from(min)));
}

#[test]
fn heap_unclassified_may_be_reported() {
    let reports = [("explicit/heap-unclassified/stacks/x", 4), ("explicit/a", 1), ("heap-allocated", 9)];
    let set = set(&reports);
    assert_eq!(Forest::new(&set).amount("explicit/heap-unclassified"), Some(4));
    assert_eq!(Forest::new(&set).amount("explicit"), Some(5));
}

#[test]
fn other_units_are_left_out_with_a_warning() {
    let mut set = set(&[("t/b", 5)]);
    let (process, kind, description) = ("p", Kind::Other, "");
    for (path, units) in [("t/a", Units::Count), ("t/b", Units::Count), ("explicit/x", Units::Bytes)] {
        set.push(Report { process, path, kind, units, amount: 1, description });
    }
    let forest = Forest::new(&set);
    assert_eq!((forest.amount("t"), forest.amount("explicit")), (Some(5), None));
    let warnings: Vec<_> = forest.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "explicit/x: kind OTHER is not allowed under explicit/",
            "t/a: units COUNT in a tree of BYTES",
            "t/b: units COUNT in a tree of BYTES",
        ]
    );
}

#[test]
fn processes_come_as_they_are_named() {
    let mut set = ReportSet::new();
    let own = format!("Main Process (pid {})", std::process::id());
    for (process, path, amount) in
        [("", "n", 1), ("web", "resident", 5), (&*own, "n", 2), ("web", "resident", 6), ("", "n", 4)]
    {
        set.push(Report { process, path, kind: Kind::Other, units: Units::Count, amount, description: "" });
    }
    let forest = Forest::filtered(&set, |path| path == "n");
    let names: Vec<_> = forest.processes().iter().map(|process| process.name()).collect();
    assert_eq!(names, [&*own, "web"]);
    assert_eq!(forest.amount("n"), Some(7));
    assert_eq!(forest.processes()[1].resident(), Some(6));
    assert!(forest.processes()[1].is_empty());
}
