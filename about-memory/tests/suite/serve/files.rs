//! Files that a page sends, and the page's other requests about stacks.

use std::fs;
use std::path::{Path, PathBuf};

use about_memory::serve::{Displays, ServeOptions};
use serde_json::{Value, json};

use super::Client;
use super::answers::{snapshot_file, stacks};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn put(client: &Client, path: &str, body: &[u8]) -> (u16, Value) {
    let response = client.send("PUT", path, "application/octet-stream", body);
    (response.status, response.json())
}

/// Like "Load..." and "Load and diff..." of about:memory.
#[test]
fn reports_are_loaded_and_compared() {
    let client = Client::new(&ServeOptions::new());
    for (name, id) in [("diff.a.json", 1), ("diff.b.json", 2)] {
        let file = fs::read(golden(&format!("firefox/{name}"))).unwrap();
        let (status, loaded) = put(&client, &format!("/api/reports?title=a%20%2F%C3%A4%0a{name}"), &file);
        // A name can add neither paths nor lines.
        assert_eq!((status, loaded), (200, json!({ "report": id, "title": format!("a /ä{name}") })));
    }
    let mut packed = Vec::new();
    let set = memory_report::file::read(golden("firefox/diff.a.json")).unwrap();
    memory_report::file::write_compressed(&mut packed, &set, 1).unwrap();
    assert_eq!(put(&client, "/api/reports", &packed).1["report"], 3);
    assert_eq!(client.get("/api/reports/1").body, client.get("/api/reports/3").body);
    assert_ne!(client.get("/api/reports/2?against=1").body, client.get("/api/reports/2").body);
    let (status, failed) = put(&client, "/api/reports?title=x.json", b"{\"version\":9}");
    assert_eq!(status, 409);
    let reason = failed["error"].as_str().unwrap();
    assert!(reason.starts_with("x.json: ") && reason.contains("version"), "{reason}");
    let state = client.get("/api/state").json();
    assert_eq!(state["reports"].as_array().unwrap().len(), 3);
    assert_eq!(state["reports"][0]["given"], false);
}

#[test]
fn snapshots_keep_the_name_of_their_file_and_go_together() {
    let client = Client::new(&ServeOptions::new());
    let file = fs::read(snapshot_file()).unwrap();
    for title in ["one", "two"] {
        put(&client, &format!("/api/snapshots?title={title}"), &file);
    }
    put(&client, "/api/snapshots?title=bad", b"no snapshot");
    let titles = |state: &Value| -> Vec<String> {
        state["snapshots"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(titles(&client.get("/api/state").json()), ["one", "two", "bad"]);
    // Firefox keeps failed snapshots.
    assert_eq!(client.send("DELETE", "/api/snapshots", "text/plain", b"").status, 200);
    assert!(titles(&client.get("/api/state").json()).is_empty());
}

#[test]
fn dumps_are_sent_shown_exported_and_advised() {
    let client = Client::new(&ServeOptions::new());
    let file = fs::read(golden("dmd/dark-matter-mixed.json")).unwrap();
    let (status, sent) = put(&client, "/api/stacks?title=dark.json", &file);
    assert_eq!((status, sent), (200, json!({ "stacks": 1, "title": "dark.json" })));
    let kinds = json!(["Twice-reported", "Unreported", "Once-reported"]);
    assert_eq!(stacks(&client, 1)["heap"]["blocks"]["kinds"], kinds);
    let folded = client.post("/api/stacks/1/export", &json!({ "format": "folded" }));
    assert!(folded.status == 200 && !folded.body.is_empty());
    // The answer contains the suggestions of `about-memory dmd --suggest`.
    let found = client.get("/api/stacks/1/suggestions").json();
    let dump = dmd_analyze::read(golden("dmd/dark-matter-mixed.json")).unwrap();
    let expected = dmd_analyze::Suggestions::new(dump, 200).unwrap();
    let list = found["suggestions"].as_array().unwrap();
    assert_eq!(list.len(), expected.suggestions.len());
    assert!(!list.is_empty());
    for (one, expected) in list.iter().zip(&expected.suggestions) {
        assert_eq!(one["bytes"], i64::try_from(expected.sums.usable()).unwrap());
        let site = expected.largest();
        assert_eq!((&one["function"], &one["type"]), (&json!(site.function), &json!(site.type_name)));
        assert_eq!(one["advice"], json!(expected.advice()));
    }
    // The text of the command contains the same advice.
    let dump = dmd_analyze::read(golden("dmd/dark-matter-mixed.json")).unwrap();
    let text = dmd_analyze::Suggestions::new(dump, 200).unwrap().to_string();
    assert!(text.contains(list[0]["advice"].as_str().unwrap()));
    // A dump of another mode has no suggestions; the error explains this.
    let file = fs::read(golden("dmd/cumulative-churn.json")).unwrap();
    put(&client, "/api/stacks", &file);
    let refused = client.get("/api/stacks/2/suggestions");
    assert_eq!(refused.status, 409);
    // Two dumps of the same mode can be compared.
    let compare = |before: u32, after: u32| {
        client.post("/api/stacks/compare", &json!({ "before": before, "after": after }))
    };
    assert_eq!(compare(1, 2).status, 409, "of other modes");
    assert_eq!(compare(1, 9).status, 404);
    let changed = compare(1, 1).json();
    assert_eq!(changed, json!({ "stacks": 3, "title": "dark.json since dark.json" }));
    assert_eq!(stacks(&client, 3)["heap"]["change"]["before"], "dark.json");
    assert_eq!(compare(1, 3).status, 409, "a difference has no blocks");
    let (status, failed) = put(&client, "/api/stacks?title=x", b"no dump");
    assert!(status == 409 && !failed["error"].as_str().unwrap().contains("/tmp"), "{failed}");
    assert_eq!(client.get("/api/state").json()["stacks"].as_array().unwrap().len(), 3);
}

#[test]
fn a_user_has_groups_of_their_own() {
    let client = Client::new(&ServeOptions::new());
    let text =
        r#"{"census":{"own":{"displayName":"Own","tooltip":"","inverted":true,"breakdown":{"by":"count"}}}}"#;
    client.server.offer(Displays::from_json(text).unwrap());
    let displays = client.get("/api/state").json()["displays"].clone();
    assert_eq!(displays["census"]["own"]["displayName"], "Own");
    assert_eq!(displays["label"], json!({}));
    for (bad, reason) in [
        ("{", "EOF"),
        (r#"{"other":{}}"#, "unknown field `other`"),
        (r#"{"label":{"x":{"displayName":"X","breakdown":{"by":"nothing"}}}}"#, "label: x: "),
    ] {
        let error = Displays::from_json(bad).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}
