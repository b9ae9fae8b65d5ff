//! Grafana's dashboard in the guide queries the metrics that an endpoint serves.

use std::collections::{BTreeMap, BTreeSet};

use memory_endpoint::Endpoint;
use serde_json::Value;

use crate::program;

const DASHBOARD: &str = include_str!("../../../../docs/src/grafana-dashboard.json");

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().unwrap().iter().collect()
}

/// The queries of all panels and variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut all: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    all.extend(variables.iter().filter_map(|one| one["query"]["query"].as_str()).map(str::to_owned));
    all
}

fn words(query: &str) -> impl Iterator<Item = &str> {
    query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

#[test]
fn the_dashboard_asks_for_metrics_and_labels_that_are_served() {
    let _alone = program::alone();
    let text = program::body(Endpoint::new().respond("/metrics", "", "text/plain"));
    let text = String::from_utf8(text).unwrap();
    let types: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let dashboard = dashboard();
    let queries = queries(&dashboard);
    assert!(queries.len() > 10);
    let used: BTreeSet<&str> = queries
        .iter()
        .flat_map(|query| words(query))
        .filter(|word| word.starts_with("memory_report_"))
        .collect();
    for metric in &used {
        assert_eq!(types.get(metric), Some(&"gauge"), "{metric} is not in {types:?}");
    }
    assert!(
        used.contains("memory_report_bytes") && used.contains("memory_report_duration_seconds"),
        "{used:?}"
    );
    for query in &queries {
        for selector in query.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()) {
            for matcher in selector.split(',') {
                let label = words(matcher).next().unwrap();
                assert!(["job", "instance", "process", "path", "kind"].contains(&label), "{query}: {label}");
            }
        }
        let count = |c: char| query.matches(c).count();
        assert!(count('(') == count(')') && count('{') == count('}') && count('"') % 2 == 0, "{query}");
    }
    // The paths that the panels select exist.
    for path in ["resident", "heap-allocated", "explicit/heap-unclassified"] {
        assert!(queries.iter().any(|query| query.contains(&format!("path=\"{path}\""))), "{path}");
    }
}

/// The parts of Grafana's schema that a file must follow.
#[test]
fn the_dashboard_has_the_structure_of_grafana() {
    let dashboard = dashboard();
    assert_eq!(dashboard["schemaVersion"], 39);
    assert!(dashboard["uid"].as_str().is_some_and(|uid| !uid.is_empty() && uid.len() <= 40));
    assert!(dashboard.get("id").is_none(), "an id belongs to one server of Grafana");
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels(&dashboard) {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        for key in ["title", "type", "description"] {
            assert!(panel[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {panel}");
        }
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("w") > 0 && place("x") + place("w") <= 24, "{panel}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "two panels at {x}, {y}: {panel}");
            }
        }
        let mut refs = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert!(refs.insert(target["refId"].as_str().unwrap()), "{panel}");
            assert_eq!(target["datasource"]["uid"], "${source}");
        }
    }
    let variables: BTreeSet<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    for variable in queries(&dashboard).iter().flat_map(|query| query.split('$').skip(1)) {
        let name = words(variable).next().unwrap();
        assert!(variables.contains(name), "${name}");
    }
}
