//! Odd snapshots: most are random, and two are from a heap of Firefox. `odd.jsonl.gz` has one line of JSON for each
//! snapshot: whether Firefox reads it, and Firefox's answers. In census trees, Firefox puts an `undefined` into some
//! sets of leaves. The file leaves it out.

use std::collections::HashMap;

use heap_graph::census::{CensusDifference, TreeOptions, describe_node};
use heap_graph::snapshot::{SnapshotReadOptions, read_from};
use heap_graph::{
    Breakdown, CensusReport, CensusTree, DominatorTree, Graph, HeapNode, NodeId, NodeIndex, census,
    shortest_paths,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::golden;

/// From this number of nodes on, the test does not compare the order of equal nodes: Firefox's sort of longer lists is
/// not stable.
const UNSTABLE: usize = 16;

fn list(json: &RawValue) -> Vec<Box<RawValue>> {
    serde_json::from_str(json.get()).unwrap()
}

fn text(json: &RawValue) -> String {
    serde_json::from_str(json.get()).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn breakdowns(json: &RawValue) -> Vec<Breakdown> {
    list(json).iter().map(|json| Breakdown::parse(json.get()).unwrap()).collect()
}

/// The questions about each snapshot.
struct Questions {
    breakdowns: Vec<Breakdown>,
    describe: Vec<Breakdown>,
    trees: Vec<(Breakdown, TreeOptions)>,
    diffs: Vec<Breakdown>,
}

impl Questions {
    fn new(head: &RawValue) -> Self {
        let tree = |json: &RawValue| {
            let parts = list(json);
            let wanted = golden::object(&parts[1]);
            let options = TreeOptions::new().invert(wanted.contains_key("invert"));
            let options = match wanted.get("filter").and_then(Value::as_str) {
                Some(text) => options.filter(text),
                None => options,
            };
            (Breakdown::parse(parts[0].get()).unwrap(), options)
        };
        Self {
            breakdowns: breakdowns(&golden::entry(head, "breakdowns")),
            describe: breakdowns(&golden::entry(head, "describe")),
            trees: list(&golden::entry(head, "trees")).iter().map(|json| tree(json)).collect(),
            diffs: breakdowns(&golden::entry(head, "diffs")),
        }
    }
}

/// Compares this crate's answer with Firefox's answer. If this crate returns an error, Firefox's answer must be an
/// error.
fn assert_answer<E>(ours: Result<String, E>, theirs: &RawValue, what: &str) {
    match ours {
        Ok(ours) => assert_eq!(ours, theirs.get(), "{what}"),
        Err(_) => assert!(theirs.get().starts_with(r#"{"error":"#), "{what}: {}", theirs.get()),
    }
}

fn id(json: &Value) -> NodeId {
    NodeId(json.as_u64().unwrap())
}

fn assert_nodes(graph: &Graph, theirs: &RawValue, what: &str) {
    let tree = DominatorTree::new(graph);
    for node in serde_json::from_str::<Vec<Value>>(theirs.get()).unwrap() {
        let index = graph.find(id(&node[0])).unwrap().index();
        let dominator = tree.immediate_dominator(index).map(|node| node.id().0);
        assert_eq!(node[1].as_u64(), dominator, "{what}: {node}");
        assert_eq!(node[2].as_u64().map(u128::from), tree.retained_size(index), "{what}: {node}");
        let mut ours: Vec<_> = tree.immediately_dominated(index).map(HeapNode::id).collect();
        let mut theirs: Vec<_> = node[3].as_array().unwrap().iter().map(id).collect();
        if ours.len() >= UNSTABLE {
            ours.sort();
            theirs.sort();
        }
        assert_eq!(ours, theirs, "{what}: {node}");
    }
}

/// The text of the paths and of the merged paths, by target.
fn paths_by_target(json: &RawValue) -> HashMap<String, [String; 2]> {
    let (paths, merged) = (golden::entry(json, "paths"), golden::entry(json, "deduplicated"));
    let both = list(&paths).into_iter().zip(list(&merged));
    let target = |paths: &RawValue| list(paths)[0].get().to_owned();
    both.map(|(paths, merged)| (target(&paths), [paths.get().to_owned(), merged.get().to_owned()])).collect()
}

fn assert_paths(graph: &Graph, theirs: &RawValue, what: &str) {
    let node = |json: &Value| graph.find(id(json)).unwrap().index();
    for theirs in list(theirs) {
        let question = |key| serde_json::from_str::<Value>(golden::entry(&theirs, key).get()).unwrap();
        let targets: Vec<_> = question("targets").as_array().unwrap().iter().map(node).collect();
        let max = question("max").as_u64().unwrap() as usize;
        let ours = shortest_paths(graph, node(&question("start")), &targets, max).to_json();
        // The keys of Firefox's `Map` have no defined order.
        let ours = paths_by_target(&serde_json::from_str::<Box<RawValue>>(&ours).unwrap());
        assert_eq!(ours, paths_by_target(&theirs), "{what}");
    }
}

fn assert_answers(
    graph: &Graph,
    before: Option<&Graph>,
    questions: &Questions,
    answer: &RawValue,
    what: &str,
) {
    let report = |graph, breakdown| census(graph, breakdown);
    let time = graph.creation_time().map_or("null".to_owned(), |time| time.to_string());
    assert_eq!(time, golden::entry(answer, "creationTime").get(), "{what}");
    let theirs = list(&golden::entry(answer, "census"));
    for (breakdown, theirs) in questions.breakdowns.iter().zip(&theirs) {
        assert_answer(report(graph, breakdown).map(|report| report.to_json()), theirs, what);
    }
    assert_nodes(graph, &golden::entry(answer, "nodes"), what);
    assert_paths(graph, &golden::entry(answer, "paths"), what);
    let nodes: Vec<Value> = serde_json::from_str(golden::entry(answer, "nodes").get()).unwrap();
    for (node, theirs) in nodes.iter().zip(list(&golden::entry(answer, "describe"))) {
        let node = graph.find(id(&node[0])).unwrap();
        for (breakdown, theirs) in questions.describe.iter().zip(list(&theirs)) {
            assert_answer(describe_node(node, breakdown).map(|report| report.to_json()), &theirs, what);
        }
    }
    let theirs = list(&golden::entry(answer, "trees"));
    for ((breakdown, options), theirs) in questions.trees.iter().zip(&theirs) {
        let ours = report(graph, breakdown).map(|report| CensusTree::new(&report, options).to_json());
        assert_answer(ours, theirs, what);
    }
    let Some(before) = before else { return };
    let theirs = list(&golden::entry(answer, "diffs"));
    for (breakdown, theirs) in questions.diffs.iter().zip(&theirs) {
        let ours = report(before, breakdown).and_then(|first| {
            let difference = CensusDifference::new(&first, &report(graph, breakdown)?);
            let tree = |invert| {
                CensusTree::from_difference(&difference, &TreeOptions::new().invert(invert)).to_json()
            };
            let (bytes, count) = (difference.basis_total_bytes, difference.basis_total_count);
            Ok(format!(
                r#"{{"delta":{},"bytes":{bytes},"count":{count},"tree":{},"inverted":{}}}"#,
                difference.delta.to_json(),
                tree(false),
                tree(true)
            ))
        });
        assert_answer(ours, theirs, what);
    }
}

#[test]
fn odd_snapshots_are_taken_and_answered_as_by_firefox() {
    let all = golden::text("odd.jsonl.gz");
    let mut lines = all.lines();
    let questions = Questions::new(serde_json::from_str(lines.next().unwrap()).unwrap());
    let mut graphs: HashMap<String, Graph> = HashMap::new();
    let (mut taken, mut refused) = (0, 0);
    for line in lines {
        let line: HashMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
        let name = text(&line["name"]);
        let read = read_from(&bytes(&text(&line["file"]))[..], &SnapshotReadOptions::new());
        match read {
            Err(error) => {
                assert_eq!(line["answer"].get(), r#"{"refused":true}"#, "{name}: {error}");
                refused += 1;
            }
            Ok(graph) => {
                assert_ne!(line["answer"].get(), r#"{"refused":true}"#, "{name}");
                let before = line.get("before").map(|before| &graphs[&text(before)]);
                assert_answers(&graph, before, &questions, &line["answer"], &name);
                graphs.insert(name, graph);
                taken += 1;
            }
        }
    }
    assert_eq!((taken, refused), (108, 73));
}

/// The census by stack of a root and two nodes with 10 and 20 bytes. The stacks of the two nodes have one frame each.
/// The frames differ only in the two flags.
fn two_stacks(is_system: bool, is_self_hosted: bool) -> CensusReport {
    let mut builder = heap_graph::GraphBuilder::new();
    let name = builder.text("same").unwrap();
    let mut node = |id, size, flags: Option<(bool, bool)>| {
        let stack = flags.map(|(is_system, is_self_hosted)| heap_graph::graph::FrameParts {
            parent: None,
            source: name,
            line: 1,
            column: 1,
            function: Some(name),
            is_system,
            is_self_hosted,
        });
        let stack = stack.map(|parts| builder.frame(parts).unwrap());
        let parts = heap_graph::NodeParts {
            allocation_stack: stack,
            ..heap_graph::NodeParts::new(NodeId(id), size, name)
        };
        builder.node(parts).unwrap();
        if id == 1 {
            builder.edge(NodeId(2), None).unwrap();
            builder.edge(NodeId(3), None).unwrap();
        }
    };
    node(1, 1, None);
    node(2, 10, Some((false, false)));
    node(3, 20, Some((is_system, is_self_hosted)));
    let graph = builder.finish().unwrap();
    assert_eq!(graph.node(NodeIndex::ROOT).edges().count(), 2);
    census(&graph, &Breakdown::preset("stack").unwrap()).unwrap()
}

#[test]
fn a_function_whose_name_is_empty_has_none() {
    let mut builder = heap_graph::GraphBuilder::new();
    let (source, empty) = (builder.text("source").unwrap(), builder.text("").unwrap());
    let mut frame = |function| {
        let (is_system, is_self_hosted) = (false, false);
        let parts = heap_graph::graph::FrameParts {
            parent: None,
            source,
            line: 1,
            column: 1,
            function,
            is_system,
            is_self_hosted,
        };
        builder.frame(parts).unwrap()
    };
    assert_eq!(frame(Some(empty)), frame(None));
    assert_ne!(frame(Some(source)), frame(None));
}

#[test]
fn stacks_that_look_the_same_are_one_unless_the_system_is_in_one() {
    let stack = r#"[["same",1,1,"same",null]]"#;
    let one = format!(r#"{{"@map":[[{stack},{{"count":2,"bytes":30}}]]}}"#);
    assert_eq!(two_stacks(false, false).to_json(), one);
    assert_eq!(two_stacks(false, true).to_json(), one);
    let two = two_stacks(true, false);
    let entries = |a: &str, b: &str| format!(r#"{{"@map":[[{stack},{a}],[{stack},{b}]]}}"#);
    assert_eq!(two.to_json(), entries(r#"{"count":1,"bytes":20}"#, r#"{"count":1,"bytes":10}"#));
    let none = r#"{"count":0,"bytes":0}"#;
    assert_eq!(CensusDifference::new(&two, &two).delta.to_json(), entries(none, none));
    // Both stacks share one node of the tree. The node has the sum of their counts.
    let tree = CensusTree::new(&two, &TreeOptions::new());
    let node = tree.children(tree.root()).next().unwrap();
    assert_eq!((node.bytes, node.count, node.leaves.len()), (30, 2, 2));
}
