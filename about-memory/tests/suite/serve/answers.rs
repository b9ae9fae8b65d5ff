//! The page's requests and their answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use about_memory::HtmlOptions;
use about_memory::serve::{OpenedStacks, ServeOptions, TypeTable, TypeTableRow, TypeTables};
use about_memory::session::{EventSubject, SnapshotId};
use dmd_analyze::program::{HeapBlocks, ProgramOptions};
use dmd_analyze::{Analysis, AnalyzeOptions};
use memory_export::ProfileFormat;
use memory_reporter::{Kind, Report, ReportSet, Units};
use serde_json::{Value, json};

use super::Client;

pub(super) fn snapshot_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden/small-a.fxsnapshot")
}

/// A client of a server with one snapshot, which has the number 1.
fn with_snapshot() -> Client {
    let client = Client::new(&ServeOptions::new());
    let id = client.session.open(&snapshot_file()).unwrap();
    client.session.wait_until_read(id);
    client
}

fn set(mb: i64) -> ReportSet {
    let mut set = ReportSet::new();
    let (process, path, description) = ("Main Process (pid 1)", "explicit/cache", "A cache.");
    set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: mb << 20, description });
    set
}

#[test]
fn rows_come_in_windows() {
    let client = with_snapshot();
    let query = json!({ "view": "census", "snapshot": 1, "by": "type" });
    let all = client.post("/api/query", &json!({ "query": query })).json();
    let total = all["total"].as_u64().unwrap();
    assert!(total > 2);
    assert_eq!(all["columns"], json!(["bytes", "count", "total-bytes", "total-count"]));
    let part = json!({ "query": query, "rows": { "start": 1, "count": 2 } });
    let part = client.post("/api/query", &part).json();
    assert_eq!((&part["start"], &part["total"]), (&json!(1), &json!(total)));
    assert_eq!(part["rows"].as_array().unwrap()[..], all["rows"].as_array().unwrap()[1..3]);
    let open = all["rows"][0]["id"].clone();
    let sorted = json!({ "query": query, "rows": {
        "count": 500, "open": [open], "sort": { "column": "count", "ascending": true } } });
    let sorted = client.post("/api/query", &sorted).json();
    assert!(sorted["total"].as_u64().unwrap() > total);
    let too_many = json!({ "query": query, "rows": { "count": 501 } });
    assert_eq!(client.post("/api/query", &too_many).status, 400);
}

#[test]
fn every_view_has_an_answer() {
    let client = with_snapshot();
    let id = client.session.import("later", &mut std::fs::File::open(snapshot_file()).unwrap()).unwrap();
    client.session.wait_until_read(id);
    let ask = |query: Value| {
        let response = client.post("/api/query", &json!({ "query": query }));
        assert_eq!(response.status, 200, "{query} {}", String::from_utf8_lossy(&response.body));
        response.json()
    };
    let map = ask(json!({ "view": "tree-map", "snapshot": 1, "by": "type" }));
    assert!(map["bytes"].as_u64().unwrap() > 0 && !map["inside"].as_array().unwrap().is_empty());
    let nodes = ask(json!({ "view": "dominators", "snapshot": 1 }));
    let node = nodes["rows"][0]["id"].clone();
    let paths = ask(json!({ "view": "paths", "snapshot": 1, "node": node, "max": 5 }));
    assert_eq!(paths["paths"][0].as_array().unwrap().last().unwrap()["node"], node);
    let groups = ask(json!({ "view": "census", "snapshot": 1, "by": "objectClass" }));
    assert_eq!(groups["rows"][0]["behind"], json!(true));
    let group = groups["rows"][0]["id"].clone();
    let found = ask(json!({ "view": "individuals", "snapshot": 1, "by": "objectClass", "group": group }));
    assert_eq!(found["found"], groups["rows"][0]["numbers"][1]);
    let part = ask(json!({ "view": "dominators", "snapshot": 1, "filter": "Function" }));
    assert!(part["found"].as_u64().unwrap() > 0 && part["rows"][0]["open"] == json!(true));
    let classes = ask(json!({ "view": "classes", "snapshot": 1 }));
    assert_eq!(classes["columns"], json!(["retained", "shallow", "count"]));
    ask(json!({ "view": "search", "snapshot": 1, "text": "Function" }));
    ask(json!({ "view": "suspects", "snapshot": 1 }));
    let same = ask(json!({ "view": "diff", "baseline": 1, "comparison": id.0, "by": "type" }));
    assert_eq!(same["total"], 0, "equal snapshots have no difference");
}

#[test]
fn a_page_sees_all_changes_as_events() {
    let client = Client::new(&ServeOptions::new());
    let mut stream = TcpStream::connect(client.server.address()).unwrap();
    stream.write_all(client.head("GET /api/events?since=0", "").as_bytes()).unwrap();
    let id = client.session.open(&snapshot_file()).unwrap();
    let mut states = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let Some(data) = line.strip_prefix("data: {") else { continue };
        let event: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
        assert_eq!(event["seq"], states.len() + 1);
        assert_eq!((&event["subject"], &event["id"]), (&json!("snapshot"), &json!(id.0)));
        states.push(event["state"].as_str().unwrap().to_owned());
        if states.len() == 3 {
            break;
        }
    }
    assert_eq!(states, ["saved", "reading", "read"]);
    // A page that connects later may start at any event. A page that is ahead of the server reads the whole state
    // again.
    let mut late = TcpStream::connect(client.server.address()).unwrap();
    late.write_all(client.head("GET /api/events?since=99", "").as_bytes()).unwrap();
    let is_reset = |line: Result<String, std::io::Error>| line.unwrap() == "event: reset";
    assert!(BufReader::new(late).lines().any(is_reset));
}

/// A second page is informed of reports and stacks that the first page made. A measurement that replaces another one
/// changes no list.
#[test]
fn a_page_learns_of_new_reports_and_stacks() {
    let client = Client::new(&ServeOptions::new());
    let changes = || -> Vec<_> {
        let events = client.session.events().since(0).unwrap();
        events
            .into_iter()
            .filter(|event| event.subject == EventSubject::List)
            .map(|event| event.kind)
            .collect()
    };
    client.server.add_report("before", set(1));
    client.server.add_report("after", set(2));
    assert_eq!(changes(), ["reports", "reports"]);
    assert_eq!(client.post("/api/compare", &json!({ "baseline": 1, "comparison": 2 })).status, 200);
    client.server.add_stacks("stacks", OpenedStacks::new(HtmlOptions::new()));
    assert_eq!(changes(), ["reports", "reports", "reports", "stacks"]);
    let seq = client.get("/api/state").json()["seq"].as_u64().unwrap();
    assert_eq!(seq, 4);
    client.post("/api/series", &json!({ "path": "explicit" }));
    assert_eq!(changes().len(), 4, "reading must change no list");
    let mut stream = TcpStream::connect(client.server.address()).unwrap();
    stream.write_all(client.head("GET /api/events?since=3", "").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let event = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(
        (&event["subject"], &event["kind"], &event["seq"]),
        (&json!("list"), &json!("stacks"), &json!(4))
    );
}

#[test]
fn snapshots_are_imported_saved_and_removed() {
    let client = Client::new(&ServeOptions::new());
    let bytes = std::fs::read(snapshot_file()).unwrap();
    let imported = client.send("PUT", "/api/snapshots", "application/octet-stream", &bytes);
    assert_eq!(imported.json()["snapshot"], 1);
    client.session.wait_until_read(SnapshotId(1));
    let state = client.get("/api/state").json();
    assert_eq!(
        (&state["snapshots"][0]["state"], &state["snapshots"][0]["imported"]),
        (&json!("read"), &json!(true))
    );

    let saved = client.post("/api/export", &json!({ "format": "fxsnapshot", "snapshot": 1 }));
    assert!(saved.header("content-disposition").unwrap().starts_with("attachment"));
    assert_eq!(saved.body, bytes);
    let v8 = client.post("/api/export", &json!({ "format": "heapsnapshot", "snapshot": 1 }));
    assert!(v8.body.starts_with(b"{\"snapshot\""));
    let dominators = json!({ "format": "tsv", "query": { "view": "dominators", "snapshot": 1 } });
    assert!(client.post("/api/export", &dominators).body.starts_with(b"#id\t"));
    let census = json!({ "format": "json", "query": { "view": "census", "snapshot": 1, "by": "type" } });
    serde_json::from_slice::<Value>(&client.post("/api/export", &census).body).unwrap();
    let wrong = json!({ "format": "tsv", "query": { "view": "census", "snapshot": 1, "by": "type" } });
    assert_eq!(client.post("/api/export", &wrong).status, 400);

    let remove = |path: &str| client.raw(client.head(&format!("DELETE {path}"), "").as_bytes()).status;
    assert_eq!(
        (remove("/api/snapshots/1"), remove("/api/snapshots/1"), remove("/api/jobs/7")),
        (200, 404, 404)
    );
    // A hostile upload becomes a failed snapshot with a reason.
    client.send("PUT", "/api/snapshots", "application/octet-stream", b"hostile");
    client.session.wait_until_read(SnapshotId(2));
    let state = client.get("/api/state").json();
    assert_eq!(state["snapshots"][0]["state"], "error");
    assert!(state["snapshots"][0]["error"].as_str().unwrap().contains("gzip"));
}

/// An interrupted download must not look complete: the snapshot's own file has lost its end since it was read.
#[test]
fn a_download_that_breaks_off_has_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lost.fxsnapshot");
    std::fs::copy(snapshot_file(), &path).unwrap();
    let client = Client::new(&ServeOptions::new());
    let id = client.session.open(&path).unwrap();
    client.session.wait_until_read(id);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let mut stream = TcpStream::connect(client.server.address()).unwrap();
    let body = json!({ "format": "fxsnapshot", "snapshot": id.0 }).to_string();
    let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    stream.write_all((client.head("POST /api/export", &more) + &body).as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert_eq!(super::unchunked(&answer[end + 4..]), None);
}

#[test]
fn reports_are_shown_saved_and_compared() {
    let client = Client::new(&ServeOptions::new());
    client.server.add_report("before", set(10));
    client.server.add_report("after", set(12));
    let data = client.get("/api/reports/1");
    let length = u32::from_le_bytes(data.body[..4].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&data.body[4..4 + length]).unwrap();
    assert_eq!(header["processes"][0]["name"], "Main Process (pid 1)");
    let file = client.get("/api/reports/2/file");
    let set = memory_report::file::read_from(file.body.as_slice(), &Default::default()).unwrap();
    assert_eq!(set.get(0).unwrap().amount, 12 << 20);
    let compared = client.post("/api/compare", &json!({ "baseline": 1, "comparison": 2 })).json();
    assert_eq!(compared, json!({ "report": 3, "title": "diff of before and after" }));
    assert_eq!(client.get("/api/reports/3").status, 200);
    assert_eq!(client.get("/api/reports/4").status, 404);
    // A page that follows a process requests the same difference without a new report.
    assert_eq!(client.get("/api/reports/2?against=1").body, client.get("/api/reports/3").body);
    assert_eq!(client.get("/api/reports/2?against=9").status, 404);
}

/// Returns the body and the name of a download.
fn file(response: &super::Response) -> (String, &str) {
    assert_eq!(response.status, 200, "{}", response.head);
    let name = response.header("content-disposition").unwrap();
    let name = name.strip_prefix("attachment; filename=\"").unwrap().strip_suffix('"').unwrap();
    (String::from_utf8_lossy(&response.body).into_owned(), name)
}

#[test]
fn reports_are_exported() {
    let client = Client::new(&ServeOptions::new());
    client.server.add_report("before", set(10));
    client.server.add_report("after", set(12));
    let get = |query: &str| client.get(&format!("/api/reports/2/file?{query}"));
    let text = get("format=text");
    assert_eq!(file(&text), (about_memory::text(&set(12)).to_string(), "memory-report-2.txt"));
    for (format, name, end) in
        [("openmetrics", "memory-report-2.om", "# EOF\n"), ("prometheus", "memory-report-2.prom", "\n")]
    {
        let response = get(&format!("format={format}"));
        let (text, found) = file(&response);
        assert_eq!(found, name);
        let amount = format!("path=\"explicit/cache\",kind=\"heap\"}} {}", 12 << 20);
        assert!(text.contains(&amount) && text.ends_with(end), "{text}");
        assert_eq!(get(&format!("format={format}&against=1")).status, 400);
    }
    let difference = get("format=text&against=1");
    let expected = about_memory::text(&about_memory::diff(&set(10), &set(12))).to_string();
    assert_eq!(file(&difference).0, expected);
    let difference = get("format=json&against=1");
    let read = memory_report::file::read_from(difference.body.as_slice(), &Default::default()).unwrap();
    assert_eq!(read.get(0).unwrap().amount, 2 << 20);
    assert_eq!(get("format=pdf").status, 400);
    assert_eq!(get("against=3").status, 404);
}

#[test]
fn reports_are_a_series() {
    let client = Client::new(&ServeOptions::new());
    for (title, megabytes) in [("monday", 10), ("tuesday", 12), ("wednesday", 15)] {
        client.server.add_report(title, set(megabytes));
    }
    // A difference is not an amount at one time.
    client.post("/api/compare", &json!({ "baseline": 1, "comparison": 2 }));
    let series = client.post("/api/series", &json!({ "path": "explicit", "depth": 1 })).json();
    let titles: Vec<_> = series["reports"].as_array().unwrap().iter().map(|of| of["title"].clone()).collect();
    assert_eq!(titles, ["monday", "tuesday", "wednesday"]);
    let amounts = json!([10 << 20, 12 << 20, 15 << 20]);
    assert_eq!(
        series["rows"],
        json!([
            { "path": "explicit", "units": "BYTES", "amounts": amounts },
            { "path": "explicit/cache", "units": "BYTES", "amounts": amounts },
        ])
    );
    assert_eq!(client.post("/api/series", &json!({ "path": "nothing" })).json()["rows"], json!([]));
    let export =
        |format: &str| client.post("/api/series", &json!({ "path": "explicit/cache", "format": format }));
    let table = export("tsv");
    let expected = format!(
        "#path\tunits\tmonday\ttuesday\twednesday\nexplicit/cache\tBYTES\t{}\t{}\t{}\n",
        10 << 20,
        12 << 20,
        15 << 20
    );
    assert_eq!(file(&table), (expected, "reports.tsv"));
    let trace = export("chrome-trace");
    assert_eq!(file(&trace).1, "reports.trace.json");
    let trace = trace.json();
    let counts = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
    let counts: Vec<_> = counts.map(|event| event["args"]["bytes"].as_i64().unwrap() >> 20).collect();
    assert_eq!(counts, [10, 12, 15]);
    // The times of the reports are unknown, so the points are one second apart.
    let events = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
    let times: Vec<_> = events.map(|event| event["ts"].as_f64().unwrap()).collect();
    assert_eq!(times, [0.0, 1e6, 2e6]);
    assert_eq!(export("pdf").status, 400);
    assert_eq!(client.post("/api/series", &json!({ "depth": 11 })).status, 400);
    assert_eq!(client.post("/api/series", &json!({ "path": "x".repeat(5000) })).status, 400);
}

/// The page omits rows that are small in all reports; a file contains them.
#[test]
fn a_table_of_reports_has_every_row() {
    let client = Client::new(&ServeOptions::new());
    let mut set = set(100);
    let (process, path, description) = ("Main Process (pid 1)", "explicit/tiny", "Small.");
    set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: 5, description });
    client.server.add_report("monday", set);
    let question = json!({ "path": "explicit", "depth": 1 });
    assert_eq!(client.post("/api/series", &question).json()["leftOut"], 1);
    let table = client.post("/api/series", &json!({ "path": "explicit", "depth": 1, "format": "tsv" }));
    assert!(String::from_utf8(table.body).unwrap().contains("\nexplicit/tiny\tBYTES\t5\n"));
}

/// Returns the header of the data of stacks.
pub(super) fn stacks(client: &Client, id: u32) -> Value {
    let data = client.get(&format!("/api/stacks/{id}")).body;
    let length = u32::from_le_bytes(data[..4].try_into().unwrap()) as usize;
    serde_json::from_slice(&data[4..4 + length]).unwrap()
}

#[test]
fn dumps_are_stacks_by_how_often_they_were_reported() {
    let client = Client::new(&ServeOptions::new());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dmd");
    for (name, kinds) in [
        ("dark-matter-mixed.json", json!(["Twice-reported", "Unreported", "Once-reported"])),
        ("live-basic.json", json!(["Live"])),
        ("cumulative-churn.json", json!(["Cumulative"])),
    ] {
        let dump = dmd_analyze::read(golden.join(name)).unwrap();
        let blocks = HeapBlocks::new(dump, &ProgramOptions::new());
        client.server.add_stacks(name, OpenedStacks::new(HtmlOptions::new().heap_blocks(blocks)));
        let state = client.get("/api/state").json();
        let last = state["stacks"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["title"], name);
        let header = stacks(&client, last["id"].as_u64().unwrap().try_into().unwrap());
        assert_eq!(header["heap"]["blocks"]["kinds"], kinds, "{name}");
        let reporters = header["heap"]["blocks"]["reporters"].as_array().unwrap();
        assert_eq!(reporters.is_empty(), kinds != json!(["Twice-reported", "Unreported", "Once-reported"]));
        assert!(header["heap"]["rows"].as_u64().unwrap() > 1, "{name}");
    }
    assert_eq!(client.get("/api/stacks/9").status, 404);
}

/// The page shows the resident memory of the process by owner above the views of a dump.
#[test]
fn a_dump_has_the_resident_memory_of_its_process() {
    let client = Client::new(&ServeOptions::new());
    let dump = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
        "blockList": [{"req": 8192, "alloc": "A", "untouched": 4096}], "traceTable": {"A": ["F"]},
        "frameTable": {"F": "#00: app::f (/home/me/app/src/f.rs:1)"},
        "mappings": {"pageSize": 4096, "resident": 8192, "list": [{"start": "1000", "bytes": 16384, "access": "rw-p",
            "owner": "heap", "resident": 8192, "blocks": 1, "live": 8192, "liveResident": 4096}]}}"##;
    let without = dump.replace("\"mappings\"", "\"others\"");
    for (index, (text, has_memory)) in [(dump, true), (&without, false)].into_iter().enumerate() {
        let sent = client.send("PUT", "/api/stacks", "application/octet-stream", text.as_bytes());
        assert_eq!(sent.status, 200, "{:?}", String::from_utf8_lossy(&sent.body));
        let header = stacks(&client, index as u32 + 1);
        let memory = header["heap"]["blocks"]["memory"].as_str();
        assert_eq!(memory.is_some(), has_memory, "{header}");
        assert!(memory.is_none_or(|text| text.contains("4.00 KiB   50.00%  live blocks\n")), "{memory:?}");
    }
}

#[test]
fn stacks_are_exported_one_at_a_time() {
    let client = with_snapshot();
    client.server.add_stacks("without files", OpenedStacks::new(HtmlOptions::new()));
    let (begin, began) = std::sync::mpsc::sync_channel(0);
    let (end, ended) = std::sync::mpsc::sync_channel(0);
    let ended = std::sync::Mutex::new(ended);
    let write =
        move |format, window: Option<memory_export::dmd::RecordingWindow>, out: &mut dyn std::io::Write| {
            match format {
                ProfileFormat::Dhat => return Err("it has no lives".to_owned()),
                ProfileFormat::Pprof => {
                    begin.send(()).unwrap();
                    ended.lock().unwrap().recv().unwrap();
                }
                _ => {}
            }
            write!(out, "{format:?} {window:?}").map_err(|error| error.to_string())
        };
    client.server.add_stacks("with files", OpenedStacks::new(HtmlOptions::new()).files(write));
    let stacks = client.get("/api/state").json()["stacks"].clone();
    assert_eq!((&stacks[0]["files"], &stacks[1]["files"]), (&json!(false), &json!(true)));
    let export = |id: u32, body: &Value| client.post(&format!("/api/stacks/{id}/export"), body);
    let folded = export(2, &json!({ "format": "folded" }));
    assert_eq!(file(&folded), ("Folded None".to_owned(), "stacks-2.folded"));
    let window = export(2, &json!({ "format": "firefox-profiler", "from": 5_000, "to": 7_000 }));
    let expected = "FirefoxProfiler Some(RecordingWindow { from: Some(After(5µs)), to: After(7µs) })";
    assert_eq!(file(&window), (expected.to_owned(), "stacks-2.profile.json"));
    // The live blocks of one time need no start.
    let alive = export(2, &json!({ "format": "folded", "to": 7_000 }));
    assert_eq!(file(&alive).0, "Folded Some(RecordingWindow { from: None, to: After(7µs) })");
    let failed = export(2, &json!({ "format": "dhat" }));
    assert_eq!((failed.status, failed.json()), (409, json!({ "error": "it has no lives" })));
    assert_eq!(export(1, &json!({ "format": "folded" })).status, 409);
    assert_eq!(export(3, &json!({ "format": "folded" })).status, 404);
    assert_eq!(export(2, &json!({ "format": "pdf" })).status, 400);
    assert_eq!(export(2, &json!({ "format": "folded", "from": 5_000 })).status, 400);
    let nodes = json!({ "format": "stacks", "of": "folded", "snapshot": 1 });
    let path = client.post("/api/stacks/2/ticket", &json!({ "format": "folded" })).json()["path"].clone();
    let host = client.server.address();
    let ticket = format!("GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", path.as_str().unwrap());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| export(2, &json!({ "format": "pprof" })).status);
        began.recv().unwrap();
        assert_eq!(export(2, &json!({ "format": "folded" })).status, 429);
        // A file with the nodes of a snapshot counts as the same kind of work, so the server refuses it.
        assert_eq!(client.post("/api/export", &nodes).status, 429);
        // Reading a dump takes as much memory as writing a file, so the server also refuses these requests.
        let both = json!({ "before": 2, "after": 2 });
        assert_eq!(client.post("/api/stacks/compare", &both).status, 429);
        assert_eq!(client.send("PUT", "/api/stacks", "application/octet-stream", b"{}").status, 429);
        // A ticket stays valid until it has returned a file.
        assert_eq!(client.raw(ticket.as_bytes()).status, 429);
        end.send(()).unwrap();
        assert_eq!(first.join().unwrap(), 200);
    });
    assert_eq!(client.raw(ticket.as_bytes()).status, 200);
    assert_eq!(client.raw(ticket.as_bytes()).status, 404, "once");
    let nodes = client.post("/api/export", &nodes);
    let (text, name) = file(&nodes);
    assert_eq!(name, "heap-1.folded");
    assert!(text.lines().count() > 1, "{text}");
}

/// When the page of an export closes the connection, the export ends, so it blocks no other export.
#[test]
fn a_page_that_goes_ends_its_export() {
    let client = Client::new(&ServeOptions::new());
    let (begin, began) = std::sync::mpsc::sync_channel(0);
    let (end, ended) = std::sync::mpsc::sync_channel(1);
    let write = move |_, _: Option<memory_export::dmd::RecordingWindow>, out: &mut dyn std::io::Write| {
        begin.send(()).unwrap();
        // The server notices only at a later write that the page has closed the connection.
        let written = (0..1000).try_for_each(|_| {
            std::thread::sleep(Duration::from_millis(5));
            out.write_all(&[0; 100_000])
        });
        end.send(written.is_ok()).unwrap();
        written.map_err(|error| error.to_string())
    };
    client.server.add_stacks("large", OpenedStacks::new(HtmlOptions::new()).files(write));
    let body = json!({ "format": "folded" }).to_string();
    let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let request = client.head("POST /api/stacks/1/export", &more) + &body;
    let mut stream = TcpStream::connect(client.server.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    began.recv().unwrap();
    drop(stream);
    assert!(!ended.recv().unwrap());
}

/// The rows contain all blocks of the dump, each under its kind.
#[test]
fn the_kinds_of_a_dump_add_up() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dmd/dark-matter-mixed.json");
    let analysis = Analysis::new(dmd_analyze::read(&golden).unwrap(), &AnalyzeOptions::new().estimate(true));
    let blocks = HeapBlocks::new(dmd_analyze::read(&golden).unwrap(), &ProgramOptions::new());
    for of_kind in blocks.kinds() {
        assert_eq!(of_kind.sums.len(), blocks.rows().rows().len());
        let sum = of_kind.sums.iter().fold((0, 0), |all, sums| (all.0 + sums.usable(), all.1 + sums.num));
        let expected = analysis.sums(of_kind.kind);
        assert_eq!(sum, (expected.usable(), expected.num), "{}", of_kind.kind.name());
        assert!(sum.0 > 0);
    }
}

#[test]
fn processes_that_do_not_listen_are_an_error_in_words() {
    let client = Client::new(&ServeOptions::new());
    assert_eq!(client.get("/api/processes").status, 200);
    let own = std::process::id();
    let response = client.post("/api/measure", &json!({ "pids": [own] }));
    assert_eq!(response.status, 409);
    assert!(response.json()["error"].as_str().unwrap().contains("does not listen"));
    assert_eq!(client.post("/api/measure", &json!({ "pids": [] })).status, 400);
    let minimize = client.post(&format!("/api/processes/{own}/minimize"), &json!({}));
    assert_eq!(minimize.status, 409);
    assert_eq!(client.post(&format!("/api/processes/{own}/kill"), &json!({})).status, 404);
}

/// A page whose view is closed closes the connection of the request. If the answer is complete before the server
/// notices, the test repeats the request with another snapshot.
#[test]
fn a_page_that_goes_cancels_its_question() {
    let client = Client::new(&ServeOptions::new());
    let is_cancelled = (0..50).any(|_| {
        let snapshot = client.session.insert("chain", crate::session::chain(200_000)).unwrap();
        let query = json!({ "view": "search", "snapshot": snapshot.0, "text": "nothing" });
        let body = json!({ "query": query }).to_string();
        let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let request = client.head("POST /api/query", &more) + &body;
        let mut seq = client.session.events().last();
        let mut stream = TcpStream::connect(client.server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        drop(stream);
        let end = loop {
            let events = client.session.events().wait(seq, Duration::from_secs(1)).unwrap();
            seq = events.last().map_or(seq, |event| event.seq);
            let mut ends =
                events.into_iter().filter(|event| event.kind == "search" && event.state != "computing");
            if let Some(end) = ends.next() {
                break end.state;
            }
        };
        client.session.remove(snapshot);
        end == "cancelled"
    });
    assert!(is_cancelled);
    assert_eq!(client.get("/api/state").status, 200);
}

#[test]
fn a_snapshot_with_types_has_tables() {
    let client = with_snapshot();
    let state = client.get("/api/state").json();
    assert_eq!((&state["types"], &state["typesOfProcesses"]), (&json!([]), &json!(false)));
    assert_eq!(client.post("/api/processes/1/types", &json!({})).status, 404);

    let row = |text: &str| TypeTableRow { bytes: 48, blocks: 2, text: text.to_owned(), of_type: None };
    let table = TypeTable::new("field", "By field", 96, vec![row("a"), row("b"), row("c")], 2);
    let tables = TypeTables::new("96 B in 4 blocks", vec![table]);
    let saved = |tables: TypeTables| {
        move |path: &Path| {
            std::fs::copy(snapshot_file(), path).map_err(|error| error.to_string())?;
            Ok(tables)
        }
    };
    let id = client.server.add_types("types of x", saved(tables.clone())).unwrap();
    client.session.wait_until_read(id);
    let state = client.get("/api/state").json();
    assert_eq!(state["types"], json!([2]));
    assert_eq!(
        (&state["snapshots"][1]["title"], &state["snapshots"][1]["state"]),
        (&json!("types of x"), &json!("read"))
    );
    let answer = client.get("/api/types/2").json();
    assert_eq!(answer["summary"], "96 B in 4 blocks");
    let table = &answer["tables"][0];
    assert_eq!((&table["title"], &table["left_out"]), (&json!("By field"), &json!(1)));
    assert_eq!(table["rows"][1], json!({ "bytes": 48, "blocks": 2, "text": "b", "of_type": null }));
    assert_eq!(client.get("/api/types/1").status, 404);

    client.server.types_of_processes(move |pid, path| match pid {
        7 => saved(tables.clone())(path),
        _ => Err(format!("process {pid} has gone")),
    });
    assert_eq!(client.get("/api/state").json()["typesOfProcesses"], true);
    for (pid, snapshot) in [(7, 3), (8, 4)] {
        let answer = client.post(&format!("/api/processes/{pid}/types"), &json!({})).json();
        assert_eq!(answer, json!({ "snapshot": snapshot }));
        client.session.wait_until_read(SnapshotId(snapshot));
    }
    let state = client.get("/api/state").json();
    assert_eq!(state["types"], json!([2, 3]));
    assert_eq!(state["snapshots"][3]["error"], "process 8 has gone");

    // Tables are removed with their snapshots.
    assert!(client.session.remove(SnapshotId(2)));
    client.session.wait_until_read(client.server.add_types("again", |_| Err("no".to_owned())).unwrap());
    assert_eq!(client.get("/api/types/2").status, 404);
}
