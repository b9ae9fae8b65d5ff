//! Trees of reports, and differences of reports.

use heap_graph::census::{CensusDifference, TreeOptions};
use heap_graph::{Breakdown, CensusTree, census};
use serde_json::Value;

use crate::golden::{self, SNAPSHOTS};

#[test]
fn every_tree_of_firefox_is_ours() {
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let answers = golden::answers(name);
        let trees = golden::entries(answers.get("trees"));
        assert_eq!(trees.len(), 7);
        for (kind, expected) in trees {
            let breakdown = Breakdown::parse(golden::entry(&expected, "breakdown").get()).unwrap();
            let wanted = golden::object(&golden::entry(&expected, "options"));
            let mut options = TreeOptions::new().invert(wanted.contains_key("invert"));
            if let Some(text) = wanted.get("filter").and_then(Value::as_str) {
                options = options.filter(text);
            }
            let tree = CensusTree::new(&census(&graph, &breakdown).unwrap(), &options);
            same(&tree.to_json(), golden::entry(&expected, "tree").get(), &format!("{name}: {kind}"));
        }
    }
}

fn same(ours: &str, theirs: &str, what: &str) {
    if ours != theirs {
        let at = ours.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count();
        let near = |text: &str| text[at.saturating_sub(200)..(at + 300).min(text.len())].to_owned();
        panic!("{what}:\nours:   {}\ntheirs: {}", near(ours), near(theirs));
    }
}

#[test]
fn every_difference_of_firefox_is_ours() {
    let (a, b) = (golden::snapshot("small-a"), golden::snapshot("small-b"));
    let expected = golden::entries(&golden::raw("small-b.diff-from-small-a.json.gz"));
    assert_eq!(expected.len(), 3);
    for (kind, expected) in expected {
        let breakdown = Breakdown::parse(golden::entry(&expected, "breakdown").get()).unwrap();
        let difference =
            CensusDifference::new(&census(&a, &breakdown).unwrap(), &census(&b, &breakdown).unwrap());
        same(&difference.delta.to_json(), golden::entry(&expected, "delta").get(), &kind);
        let basis = |key| golden::entry(&expected, key).get().parse::<i128>().unwrap();
        assert_eq!(difference.basis_total_bytes, basis("basisTotalBytes"));
        assert_eq!(difference.basis_total_count, basis("basisTotalCount"));
        let tree = |options| CensusTree::from_difference(&difference, &options).to_json();
        same(&tree(TreeOptions::new()), golden::entry(&expected, "tree").get(), &kind);
        same(&tree(TreeOptions::new().invert(true)), golden::entry(&expected, "inverted").get(), &kind);
    }
}
