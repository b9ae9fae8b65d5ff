//! The sums of all pages equal the whole.

use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Server;

fn sum(of: &Value, field: &str) -> i128 {
    of[field].as_i64().unwrap_or_else(|| panic!("{field}: {of}")).into()
}

/// Reads all pages. Checks the sums of each page, and returns the names of all rows.
fn read_all(server: &mut Server, tool: &str, mut arguments: Value, limits: &[u64]) -> Vec<String> {
    let mut names = Vec::new();
    let mut shown_before = [0, 0, 0];
    for limit in limits.iter().cycle() {
        arguments["limit"] = json!(limit);
        let page = server.call(tool, arguments.clone());
        let rows = page["rows"].as_array().unwrap();
        assert!(rows.len() as u64 <= *limit);
        assert_eq!(page["first"], names.len());
        for (place, field) in ["rows", "bytes", "count"].into_iter().enumerate() {
            let of_rows = match field {
                "rows" => rows.len() as i128,
                field => rows.iter().map(|row| sum(row, field)).sum(),
            };
            assert_eq!(sum(&page["shown"], field), of_rows, "{field}");
            let seen = shown_before[place] + of_rows;
            assert_eq!(seen + sum(&page["rest"], field), sum(&page["total"], field), "{field}");
            shown_before[place] = seen;
        }
        names.extend(rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()));
        match &page["cursor"] {
            Value::Null => return names,
            cursor => {
                assert!(!rows.is_empty(), "a page with a cursor has rows");
                arguments["cursor"] = cursor.clone();
            }
        }
    }
    unreachable!("the limits repeat")
}

fn document(reports: &[(String, i64)]) -> String {
    let mut text = String::new();
    for (index, (name, amount)) in reports.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let path = json!(format!("explicit/{name}/{index}"));
        let _ = write!(
            text,
            "{comma}{{\"process\": \"P{}\", \"path\": {path}, \"kind\": 1, \"units\": 0, \"amount\": {amount}, \
             \"description\": \"\"}}",
            index % 2
        );
    }
    crate::document(&text)
}

#[test]
fn the_sums_of_all_pages_equal_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let server = std::cell::RefCell::new(Server::with(&["--root", folder.path().to_str().unwrap()]));
    let name = prop_oneof!["[a-z]{1,8}", "[a-z\\u{202e}\\u{1b}\"\\\\é🦀]{1,300}"];
    let reports = prop::collection::vec((name, -1_000_000..i64::MAX / 1000), 0..120);
    let limits = prop::collection::vec(1_u64..60, 1..4);
    let sorts = prop::sample::select(vec!["bytes", "count", "name"]);
    let bytes = prop_oneof![Just(3072_u64), Just(6144), Just(49152)];
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(reports in reports, limits in limits, sort in sorts, reverse: bool, max_bytes in bytes)| {
        let path = folder.path().join("report.json");
        fs::write(&path, document(&reports)).unwrap();
        let server = &mut *server.borrow_mut();
        let opened = server.call("open", json!({ "path": "report.json" }));
        let handle = opened["handle"].clone();
        let arguments = json!({
            "handle": handle, "by": "path", "sort": sort, "reverse": reverse, "max_bytes": max_bytes,
        });
        let names = read_all(server, "rows", arguments, &limits);
        let all = server.call("rows", json!({ "handle": handle, "by": "path", "limit": 1 }));
        prop_assert_eq!(&all["total"]["bytes"], &opened["total"]["bytes"]);
        prop_assert_eq!(json!(names.len()), all["total"]["rows"].clone());
        let filtered = json!({ "handle": handle, "by": "path", "filter": "a" });
        read_all(server, "rows", filtered, &limits);
        server.call("close", json!({ "handle": handle }));
    });
}

#[test]
fn pages_of_graphs_and_stacks_are_whole() {
    let mut server = Server::start();
    let graph = server.open(&super::snapshot("small-a.fxsnapshot"));
    for by in ["type", "retained-type", "node", "suspect", "stack", "file"] {
        read_all(&mut server, "top", json!({ "handle": graph, "by": by }), &[7, 500]);
    }
    let later = server.open(&super::snapshot("small-b.fxsnapshot"));
    read_all(&mut server, "explain", json!({ "before": graph, "after": later }), &[3, 20]);
    read_all(&mut server, "census_diff", json!({ "before": graph, "after": later, "by": "stack" }), &[5]);
    let dump = server.open(&super::golden("dmd/many-records.json"));
    for by in ["site", "type", "crate", "stack"] {
        let names =
            read_all(&mut server, "rows", json!({ "handle": dump, "by": by, "max_bytes": 3072 }), &[500]);
        assert!(!names.is_empty(), "{by}");
    }
    read_all(&mut server, "why", json!({ "handle": dump, "name": "site" }), &[20]);
    server.end();
}
