//! Properties that hold for all sets of reports.

use memory_reporter::tree::{Forest, TreeNode};
use memory_reporter::{Kind, Report, ReportSet, Units, file};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Owned {
    process: String,
    path: String,
    kind: u8,
    units: u8,
    amount: i64,
    description: String,
}

impl Owned {
    fn push_to(&self, set: &mut ReportSet) {
        set.push(Report {
            process: &self.process,
            path: &self.path,
            kind: Kind::from_number(self.kind.into()).unwrap(),
            units: Units::from_number(self.units.into()).unwrap(),
            amount: self.amount,
            description: &self.description,
        });
    }
}

fn set(reports: &[Owned]) -> ReportSet {
    let mut set = ReportSet::new();
    reports.iter().for_each(|report| report.push_to(&mut set));
    set
}

prop_compose! {
    /// Few names, so that paths share prefixes. All reports follow the rules.
    fn report()(
        process in "p|q|.{1,3}",
        components in prop::collection::vec("a|b|ab|\\PC{0,2}|é|(x)|!|", 1..6),
        heap in any::<bool>(),
        amount in prop_oneof![any::<i64>(), -3..100_i64, 0..(1_i64 << 30)],
        description in ".{0,4}",
    ) -> Owned {
        let path = components.join("/");
        let kind = if path.starts_with("explicit/") { u8::from(heap) } else { 2 };
        Owned { process, path, kind, units: 0, amount, description }
    }
}

/// Returns the sum of all reports at or below `path`. An amount must equal this sum.
fn naive(reports: &[Owned], process: &str, path: &str) -> i128 {
    let below = format!("{path}/");
    reports
        .iter()
        .filter(|r| r.process == process && (r.path == path || r.path.starts_with(&below)))
        .map(|r| i128::from(r.amount))
        .sum()
}

fn check(node: TreeNode<'_, '_>) {
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        if !node.is_leaf() {
            assert_eq!(node.amount(), node.children().map(TreeNode::amount).sum::<i128>(), "{node:?}");
            assert_eq!(node.reports(), 0);
        }
        left.extend(node.children());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn amounts_are_sums(reports in prop::collection::vec(report(), 0..40)) {
        let set = set(&reports);
        let forest = Forest::new(&set);
        prop_assert!(forest.warnings().is_empty());
        for process in forest.processes() {
            process.trees().for_each(check);
        }
        for report in &reports {
            let process = forest.processes().iter().find(|p| p.name() == report.process).unwrap();
            let parts = report.path.char_indices().filter(|(_, c)| *c == '/').map(|(i, _)| i);
            for end in parts.chain([report.path.len()]) {
                let path = &report.path[..end];
                let is_tree = reports.iter().any(|r| {
                    r.process == report.process && r.path.strip_prefix(path).is_some_and(|r| r.starts_with('/'))
                });
                // A line that shares its name with a tree is found only by name.
                if !path.contains('/') && is_tree {
                    let line = process.line(path).map_or(0, |line| line.amount());
                    prop_assert_eq!(process.amount(path).unwrap() + line, naive(&reports, process.name(), path));
                } else {
                    prop_assert_eq!(process.amount(path), Some(naive(&reports, process.name(), path)));
                }
            }
        }
        super::shown(&set);
    }

    #[test]
    fn what_is_written_is_read(reports in prop::collection::vec(report(), 0..40), known in any::<bool>()) {
        let mut set = set(&reports);
        set.set_usable_size_known(known);
        let mut written = Vec::new();
        file::write_to(&mut written, &set).unwrap();
        let read = file::read_from(&*written, &file::ReadOptions::default()).unwrap();
        prop_assert!(read.warnings().is_empty());
        prop_assert_eq!(read.usable_size_known(), known);
        prop_assert!(read.iter().eq(set.iter()));
    }

    #[test]
    fn order_of_reports_does_not_matter(reports in prop::collection::vec(report(), 0..20)) {
        let mut backwards = reports.clone();
        backwards.reverse();
        let (a, b) = (set(&reports), set(&backwards));
        let (a, b) = (Forest::new(&a), Forest::new(&b));
        for report in &reports {
            prop_assert_eq!(a.amount(&report.path), b.amount(&report.path));
        }
    }
}
