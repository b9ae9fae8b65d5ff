//! The tools on files whose contents are known.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Server, golden, snapshot};

fn names(page: &Value) -> Vec<&str> {
    page["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn reports_have_paths_processes_and_other_amounts() {
    let mut server = Server::start();
    let opened = server.call("open", json!({ "path": golden("firefox/sample.json.gz") }));
    assert_eq!(opened["kind"], "a memory report");
    assert_eq!(opened["groups"], json!(["path", "process", "other"]));
    let handle = opened["handle"].clone();
    let (summary, text) = server.call_both("summary", json!({ "handle": handle }));
    assert_eq!(summary["total"], opened["total"]);
    let paths = &summary["tables"][0];
    assert_eq!(paths["total"]["bytes"], opened["total"]["bytes"]);
    assert_eq!(names(paths)[0], "explicit/gfx/webrender/swgl");
    assert!(text.contains("\"explicit/heap-unclassified\""), "{text}");
    // The cursor of a summary continues in `top`.
    let next = server.call("top", json!({ "handle": handle, "by": "path", "cursor": paths["cursor"] }));
    assert_eq!(next["first"], paths["shown"]["rows"]);
    let node = server.call("node", json!({ "handle": handle, "id": "explicit/gfx" }));
    assert!(names(&node).iter().any(|name| name.contains("webrender")), "{node}");
    let processes = server.call("rows", json!({ "handle": handle, "by": "process", "sort": "name" }));
    assert_eq!(processes["total"]["bytes"], opened["total"]["bytes"]);
    assert!(names(&processes).is_sorted(), "{processes}");
    let reversed =
        server.call("rows", json!({ "handle": handle, "by": "process", "sort": "name", "reverse": true }));
    assert!(names(&reversed).iter().rev().is_sorted(), "{reversed}");
    assert!(server.fail("why", json!({ "handle": handle, "name": "gfx" })).contains("node"));
    server.end();
}

#[test]
fn explain_of_reports_sums_to_the_change() {
    let mut server = Server::start();
    let folder = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let report = |name: &str, cache: u64, log: u64| {
        let one = |path: &str, amount: u64| {
            format!(
                "{{\"process\": \"Main Process (pid 1)\", \"path\": \"explicit/{path}\", \"kind\": 1, \"units\": 0, \
                 \"amount\": {amount}, \"description\": \"D.\"}}"
            )
        };
        let path = folder.path().join(name);
        fs::write(&path, crate::document(&[one("cache/pages", cache), one("log", log)].join(","))).unwrap();
        path
    };
    let (before, after) = (report("a.json", 1000, 500), report("b.json", 5000, 300));
    let mut server_there = Server::with(&["--root", folder.path().to_str().unwrap()]);
    let (before, after) = (server_there.open(&before), server_there.open(&after));
    let (page, text) = server_there.call_both("explain", json!({ "before": before, "after": after }));
    assert_eq!(page["total"], json!({ "rows": 2, "bytes": 3800, "count": 2 }));
    assert_eq!(names(&page), ["explicit/cache/pages", "explicit/log"]);
    assert_eq!(page["rows"][0]["bytes"], 4000);
    assert_eq!(page["rows"][1]["bytes"], -200);
    assert!(text.contains("1.46 KiB before, 5.18 KiB after"), "{text}");
    let graph = server.open(&snapshot("small-a.fxsnapshot"));
    let report = server.open(&golden("firefox/units.json"));
    let advice = server.fail("explain", json!({ "before": graph, "after": report }));
    assert!(advice.contains("same kind"), "{advice}");
    server_there.end();
    server.end();
}

#[test]
fn stacks_have_sites_types_crates_calls_and_lines() {
    let mut server = Server::start();
    let opened = server.call("open", json!({ "path": golden("dmd/dark-matter-mixed.json") }));
    assert_eq!(opened["groups"], json!(["site", "type", "crate", "stack"]));
    let handle = opened["handle"].clone();
    for group in ["site", "type", "crate", "stack"] {
        let page = server.call("rows", json!({ "handle": handle, "by": group, "limit": 500 }));
        assert_eq!(page["total"]["bytes"], opened["total"]["bytes"], "{group}");
        assert_eq!(page["total"]["count"], opened["total"]["count"], "{group}");
    }
    let found = server.call("why", json!({ "handle": handle, "name": "Table" }));
    let path = &found["paths"][0];
    assert_eq!(path["calls"][0], "Table::grow at src/app.rs:5");
    let node = server.call("node", json!({ "handle": handle, "id": path["id"] }));
    assert_eq!(names(&node), ["Table::grow", "Cache::insert", "main"]);
    let source = server.call("source", json!({ "handle": handle, "id": path["id"] }));
    assert_eq!(source["calls"][0]["file"], "src/app.rs");
    assert_eq!(source["calls"][0]["line"], 5);
    let again = server.call("why", json!({ "handle": handle, "id": path["id"] }));
    assert_eq!(again["total"]["rows"], 1);
    server.end();
}

#[test]
fn source_shows_the_lines_of_files_below_the_root() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/app.rs"), "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n").unwrap();
    let dump = folder.path().join("dmd.json");
    fs::copy(golden("dmd/dark-matter-mixed.json"), &dump).unwrap();
    let mut server = Server::with(&["--root", folder.path().to_str().unwrap()]);
    let handle = server.open(&dump);
    let found = server.call("why", json!({ "handle": handle, "name": "Table::grow" }));
    let source = server.call("source", json!({ "handle": handle, "id": found["paths"][0]["id"] }));
    let lines = json!(["3: three", "4: four", "5: five", "6: six", "7: seven"]);
    assert_eq!(source["calls"][0]["lines"], lines);
    server.end();
}

#[test]
fn recordings_open_at_a_time_and_explain_their_difference() {
    let mut server = Server::start();
    let path = golden("heap/after.dmdrec");
    let peak = server.call("open", json!({ "path": path, "at": "peak" }));
    let end = server.call("open", json!({ "path": path, "at": "end" }));
    assert_eq!(end["total"]["count"], 12);
    let (peak_bytes, end_bytes) =
        (peak["total"]["bytes"].as_i64().unwrap(), end["total"]["bytes"].as_i64().unwrap());
    for by in ["site", "stack"] {
        let arguments = json!({ "before": peak["handle"], "after": end["handle"], "by": by });
        let page = server.call("explain", arguments);
        assert_eq!(page["total"]["bytes"], end_bytes - peak_bytes, "{by}");
        let sum: i64 =
            page["rows"].as_array().unwrap().iter().map(|row| row["bytes"].as_i64().unwrap()).sum();
        assert_eq!(sum, end_bytes - peak_bytes, "{by}");
    }
    assert!(server.fail("open", json!({ "path": path, "at": "NaN" })).contains("peak"));
    let snapshot = server.fail("open", json!({ "path": snapshot("small-a.fxsnapshot"), "at": "end" }));
    assert!(snapshot.contains("dumps and recordings"), "{snapshot}");
    server.end();
}

#[test]
fn profiles_have_functions_and_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("p.pb.gz");
    let status = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["export", golden("dmd/live-basic.json").to_str().unwrap(), "--no-fix-stacks", "-o"])
        .arg(&profile)
        .output()
        .unwrap();
    assert!(status.status.success());
    let mut server = Server::with(&["--root", folder.path().to_str().unwrap()]);
    let opened = server.call("open", json!({ "path": "p.pb.gz" }));
    assert_eq!(opened["kind"], "a pprof profile");
    let handle = opened["handle"].clone();
    server.call("summary", json!({ "handle": handle }));
    for group in ["function", "stack"] {
        let page = server.call("rows", json!({ "handle": handle, "by": group, "limit": 500 }));
        assert_eq!(page["total"]["bytes"], opened["total"]["bytes"], "{group}");
    }
    let second = server.open("p.pb.gz".as_ref());
    let page = server.call("explain", json!({ "before": handle, "after": second }));
    assert_eq!(page["total"], json!({ "rows": 0, "bytes": 0, "count": 0 }));
    server.end();
}

#[test]
fn graphs_have_types_nodes_suspects_and_paths() {
    let mut server = Server::start();
    let (first, second) =
        (server.open(&snapshot("small-a.fxsnapshot")), server.open(&snapshot("small-b.fxsnapshot")));
    let summary = server.call("summary", json!({ "handle": first }));
    assert_eq!(summary["tables"][0]["group"], "suspect");
    assert_eq!(summary["tables"][0]["rowsOverlap"], true);
    for group in ["type", "retained-type", "node", "suspect", "stack", "file"] {
        let page = server.call("top", json!({ "handle": first, "by": group }));
        assert!(!page["rows"].as_array().unwrap().is_empty(), "{group}");
    }
    let top = server.call("top", json!({ "handle": first, "by": "node", "limit": 1 }));
    let (id, retained) = (top["rows"][0]["id"].clone(), top["rows"][0]["bytes"].as_i64().unwrap());
    let (node, text) = server.call_both("node", json!({ "handle": first, "id": id }));
    let below = node["total"]["bytes"].as_i64().unwrap();
    assert_eq!(below + top["rows"][0]["shallow"].as_i64().unwrap(), retained, "{text}");
    let edges = server.call("node", json!({ "handle": first, "id": id, "edges": true }));
    assert_eq!(edges["group"], "edge");
    let paths = server.call("why", json!({ "handle": first, "id": id }));
    let steps = paths["paths"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["id"], id);
    let named = server.call("why", json!({ "handle": first, "name": "JSString", "limit": 1 }));
    assert!(named["found"].as_u64().unwrap() > 1, "{named}");
    let explained =
        server.call("explain", json!({ "before": first, "after": second, "limit": 500, "max_bytes": 49152 }));
    let census = server
        .call("census_diff", json!({ "before": first, "after": second, "limit": 500, "max_bytes": 49152 }));
    assert_eq!(explained["total"]["bytes"], census["total"]["bytes"]);
    assert_eq!(names(&explained), names(&census));
    server.end();
}

#[test]
fn wrong_arguments_get_advice() {
    let mut server = Server::start();
    let handle = server.open(&golden("firefox/units.json"));
    for (tool, arguments, advice) in [
        ("top", json!({}), "`handle` is missing"),
        ("top", json!({ "handle": null }), "`handle` must be a text"),
        ("top", json!({ "handle": "h99" }), "open handles are: h1"),
        ("top", json!({ "handle": handle, "by": "site" }), "the groups are: path, process, other"),
        ("top", json!({ "handle": handle, "limit": 0 }), "from 1 to 500"),
        ("top", json!({ "handle": handle, "limit": -1 }), "from 1 to 500"),
        ("top", json!({ "handle": handle, "limit": 1.5 }), "from 1 to 500"),
        ("top", json!({ "handle": handle, "limit": "10" }), "from 1 to 500"),
        ("top", json!({ "handle": handle, "max_bytes": 1_000_000 }), "to 49152"),
        ("top", json!({ "handle": handle, "cursor": "x" }), "belongs to another list"),
        ("top", json!({ "handle": handle, "filter": "a" }), "there is no argument \"filter\""),
        ("rows", json!({ "handle": handle, "sort": "age" }), "one of: bytes, count, name"),
        ("rows", json!({ "handle": handle, "filter": "x".repeat(5000) }), "at most 4096 bytes"),
        ("node", json!({ "handle": handle, "id": "explicit/none" }), "no report has this path"),
        ("open", json!({}), "either `path` or `process`"),
        ("open", json!({ "process": "no-such-process" }), "no listening process"),
        ("census_diff", json!({ "before": handle, "after": handle }), "explain"),
    ] {
        let text = server.fail(tool, arguments.clone());
        assert!(text.contains(advice), "{tool} {arguments}: {text}");
    }
    server.call("close", json!({ "handle": handle }));
    assert!(server.fail("summary", json!({ "handle": handle })).contains("open a file"));
    // A cursor of another list is refused.
    let first = server.open(&golden("firefox/sample.json.gz"));
    let second = server.open(&golden("firefox/sample.json.gz"));
    let cursor = server.call("rows", json!({ "handle": first, "limit": 1 }))["cursor"].clone();
    for arguments in [
        json!({ "handle": second, "cursor": cursor }),
        json!({ "handle": first, "by": "other", "cursor": cursor }),
        json!({ "handle": first, "filter": "a", "cursor": cursor }),
    ] {
        assert!(server.fail("rows", arguments).contains("another list"));
    }
    for _ in 0..14 {
        server.open(&golden("firefox/units.json"));
    }
    assert!(server.fail("open", json!({ "path": golden("firefox/units.json") })).contains("close"));
    server.end();
}

#[test]
fn only_files_below_the_root_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside.json"));
    fs::create_dir(&root).unwrap();
    fs::copy(golden("firefox/units.json"), &outside).unwrap();
    fs::copy(golden("firefox/units.json"), root.join("inside.json")).unwrap();
    let mut server = Server::with(&["--root", root.to_str().unwrap()]);
    server.open("inside.json".as_ref());
    server.open(&root.join("inside.json"));
    let mut paths = vec!["../outside.json".to_owned(), outside.display().to_string(), "none.json".to_owned()];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, root.join("link.json")).unwrap();
        std::os::unix::fs::symlink(root.join("inside.json"), root.join("inner.json")).unwrap();
        paths.push("link.json".to_owned());
        server.open("inner.json".as_ref());
    }
    // A missing file and a file outside of the root get the same answer.
    let answers: Vec<String> =
        paths.iter().map(|path| server.fail("open", json!({ "path": path }))).collect();
    assert!(
        answers.iter().all(|answer| *answer == answers[0] && answer.contains("no file below")),
        "{answers:?}"
    );
    assert!(server.fail("open", json!({ "path": "." })).contains("a folder"));
    #[cfg(target_os = "linux")]
    {
        let fifo = root.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(server.fail("open", json!({ "path": "fifo" })).contains("not a regular file"));
    }
    server.end();
}

#[cfg(unix)]
#[test]
fn the_home_folder_is_no_root_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("work")).unwrap();
    for (start, is_allowed) in
        [("/".as_ref(), false), (folder.path(), false), (&*home, false), (&*home.join("work"), true)]
    {
        fs::copy(golden("firefox/units.json"), home.join("work/units.json")).unwrap();
        let mut server = Server::started_in(start, &home);
        let path = json!({ "path": home.join("work/units.json") });
        if is_allowed {
            server.call("open", path);
        } else {
            assert!(server.fail("open", path).contains("--root"), "{start:?}");
        }
        server.end();
    }
}

#[test]
fn captures_need_permission() {
    let mut server = Server::start();
    assert!(!server.tools.iter().any(|tool| tool["name"] == "capture"));
    let call = server.request("tools/call", json!({ "name": "capture", "arguments": {} }));
    assert_eq!(call["error"]["code"], -32602);
    server.end();
    let mut server = Server::with(&["--allow-capture", "other-*"]);
    let tool = server.tools.iter().find(|tool| tool["name"] == "capture").unwrap();
    assert_eq!(tool["annotations"]["readOnlyHint"], false);
    let own = std::process::id().to_string();
    for what in ["dump", "track", "types"] {
        let text = server.fail("capture", json!({ "process": own, "what": what }));
        assert!(text.contains(&format!("--allow-capture {own}")), "{text}");
    }
    server.end();
}
