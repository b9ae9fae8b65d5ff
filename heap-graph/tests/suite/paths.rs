//! Shortest paths as Firefox defines them.

use heap_graph::paths::PathTree;
use heap_graph::{AnalysisProgress, NodeId, NodeIndex, shortest_paths};
use serde_json::Value;

use crate::golden::{self, SNAPSHOTS};

#[test]
fn every_path_of_firefox_is_ours() {
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let node = |id: &Value| graph.find(NodeId(id.as_u64().unwrap())).unwrap().index();
        let answers = golden::answers(name);
        let sets: Vec<Value> = serde_json::from_str(answers.get("shortest_paths").get()).unwrap();
        assert!(sets.len() >= 5);
        let tree = PathTree::watched(&graph, &AnalysisProgress::new()).unwrap();
        for set in sets {
            let targets: Vec<_> = set["targets"].as_array().unwrap().iter().map(node).collect();
            let max = set["max"].as_u64().unwrap() as usize;
            let ours = shortest_paths(&graph, node(&set["start"]), &targets, max);
            if node(&set["start"]) == NodeIndex::ROOT {
                for (target, (_, paths)) in targets.iter().zip(&ours.paths) {
                    assert_eq!(tree.paths(&graph, *target, max), *paths, "{name}");
                }
            }
            let ours: Value = serde_json::from_str(&ours.to_json()).unwrap();
            let theirs = set["paths"].as_array().unwrap();
            assert_eq!(ours["paths"].as_array().unwrap().len(), theirs.len());
            for (at, entry) in ours["paths"].as_array().unwrap().iter().enumerate() {
                // The keys of Firefox's `Map` have no defined order.
                let place = theirs.iter().position(|their| their[0] == entry[0]).unwrap();
                assert_eq!(*entry, theirs[place], "{name}");
                assert_eq!(ours["deduplicated"][at], set["deduplicated"][place], "{name}");
            }
        }
    }
}

#[test]
fn handmade_paths_are_firefox_s() {
    for (name, verdict) in golden::entries(&golden::raw("handmade/verdicts.json")) {
        if name == "lone-surrogate-type-name" {
            continue;
        }
        let verdict = golden::object(&verdict);
        let Some(expected) = verdict.get("paths_to_last") else { continue };
        let graph = golden::snapshot(&format!("handmade/{name}"));
        let last = verdict["ids"].as_array().unwrap().last().unwrap().as_u64().unwrap();
        let last = graph.find(NodeId(last)).unwrap().index();
        let ours = shortest_paths(&graph, NodeIndex::ROOT, &[last], 5).to_json();
        let ours: Value = serde_json::from_str(&ours).unwrap();
        assert_eq!(ours["paths"][0][1], *expected, "{name}");
    }
}
