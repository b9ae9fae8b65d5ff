//! The answer of each path. Its sums must be the program's sums.

use std::collections::BTreeMap;

use heap_graph::HeapGraph;
use heap_graph::live::{LiveGraphOptions, Roots};
use heap_graph::snapshot::{self, SnapshotWriteOptions};
use memory_endpoint::{Endpoint, EndpointOptions, PATHS};
use memory_export::ProfileValue;
use memory_report::{ReportSet, file};

use crate::program::{self, KEPT, NAMES, body, by_reporter, line, names_bytes, profile};

fn endpoint() -> Endpoint {
    Endpoint::new().snapshot(|file| {
        let roots = |roots: &mut Roots<'_>| roots.add("names", &NAMES);
        HeapGraph::stream(file, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), roots).map(drop)
    })
}

/// The amounts of a metric by path. The grammar of both text forms is `name{label="value",...} number`.
fn metric(text: &str, name: &str) -> BTreeMap<String, i128> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let path = |line: &str| line.split_once("path=\"").unwrap().1.split('"').next().unwrap().to_owned();
    lines.map(|line| (path(line), line.rsplit_once(' ').unwrap().1.parse().unwrap())).collect()
}

#[test]
fn metrics_add_up() {
    let _alone = program::alone();
    for accept in ["application/openmetrics-text", "text/plain"] {
        let text = String::from_utf8(body(endpoint().respond("/metrics", "", accept))).unwrap();
        let bytes = metric(&text, "memory_report_bytes");
        assert_eq!(bytes["explicit/names"], names_bytes());
        let is_heap = |line: &&str| line.contains("kind=\"heap\"") && line.contains("path=\"explicit/");
        let heap = text.lines().filter(is_heap).map(|line| line.rsplit_once(' ').unwrap().1);
        let heap: i128 = heap.map(|amount| amount.parse::<i128>().unwrap()).sum();
        assert_eq!(heap, bytes["heap-allocated"], "heap-unclassified is the unreported heap");
        assert!(bytes["explicit/heap-unclassified"] >= 777_777);
        assert!(text.contains("\nmemory_report_duration_seconds "));
        // A restarted program must have the same series.
        assert!(!text.contains("(pid "), "{text}");
    }
}

#[test]
fn a_report_is_firefox_s_file() {
    let _alone = program::alone();
    let amounts = |set: &ReportSet| -> BTreeMap<String, i64> {
        set.iter().map(|report| (report.path.to_owned(), report.amount)).collect()
    };
    for (accept, content_type) in [("*/*", "application/json"), ("application/gzip", "application/gzip")] {
        let response = endpoint().respond("/memory/report", "", accept);
        assert_eq!(response.header("content-type"), Some(content_type));
        let body = body(response);
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), accept == "application/gzip");
        let set = file::read_from(&*body, &file::ReadOptions::new()).unwrap();
        let amounts = amounts(&set);
        assert_eq!(i128::from(amounts["explicit/names"]), names_bytes());
        assert!(amounts["heap-allocated"] >= amounts["explicit/names"] + 777_777);
        // DMD would need symbols for these paths.
        assert!(amounts.keys().all(|path| !path.starts_with("explicit/heap-unclassified/")));
        assert!(set.iter().all(|report| report.process.ends_with(&format!("(pid {})", std::process::id()))));
    }
}

#[test]
fn a_profile_has_addresses_build_ids_and_reporters() {
    let _alone = program::alone();
    for path in ["/debug/pprof/heap", "/debug/pprof/allocs"] {
        let response = endpoint().respond(path, "debug=0&gc=1", "");
        assert_eq!(response.header("content-type"), Some("application/octet-stream"));
        let stacks = profile(&body(response));
        let sums = by_reporter(&stacks);
        assert_eq!(sums["explicit/names"], names_bytes());
        assert_eq!(sums.values().sum::<i128>(), stacks.total(ProfileValue::LiveBytes).unwrap());
        assert!(sums[""] >= 777_777);
        let program = &stacks.modules()[0];
        assert_eq!(program.path, std::env::current_exe().unwrap().display().to_string());
        assert!(program.build_id.len() >= 16, "{program:?}");
        let mut frames = 0;
        for sample in stacks.samples() {
            for frame in stacks.stack(sample.stack) {
                let frame = stacks.frame(*frame);
                let is_address = frame.module.is_some() && frame.offset.is_some();
                // A frame without a module has a name of DMD: `???`, or the text for a stack that was not recorded.
                let name = frame.function.unwrap_or_default();
                assert!(is_address == name.is_empty(), "{frame:?}");
                assert!(is_address || name.contains("???") || name.starts_with('('), "{frame:?}");
                frames += usize::from(is_address);
            }
        }
        assert!(frames > 1000);
    }
}

/// A client that has the program's file can look up the functions of addresses.
#[test]
fn a_client_finds_the_functions() {
    let _alone = program::alone();
    let stacks = profile(&body(endpoint().respond("/debug/pprof/heap", "", "")));
    let column = stacks.index_of(ProfileValue::LiveBytes).unwrap();
    // The unreported block, with the rest of its last page.
    let is_it = |bytes: i128| (777_777..777_777 + 4096).contains(&bytes);
    let stack = stacks
        .owned()
        .iter()
        .find(|owned| owned.owner.kind == Some("unreported") && is_it(owned.sums[column]))
        .map(|owned| owned.stack)
        .unwrap();
    let offsets: Vec<u64> = stacks
        .stack(stack)
        .iter()
        .map(|frame| stacks.frame(*frame))
        .filter(|frame| frame.module.is_some_and(|module| module.index() == 0))
        .filter_map(|frame| frame.offset)
        .collect();
    let exe = std::env::current_exe().unwrap();
    let text: String = offsets
        .iter()
        .map(|offset| format!("\"F{offset}\": \"#00: ???[{} +0x{offset:x}]\"", exe.display()))
        .collect::<Vec<_>>()
        .join(", ");
    let keys: Vec<String> = offsets.iter().map(|offset| format!("\"F{offset}\"")).collect();
    let dump = format!(
        "{{\"version\": 5, \"invocation\": {{\"dmdEnvVar\": null, \"mode\": \"live\"}}, \
         \"blockList\": [{{\"req\": 1, \"alloc\": \"A\"}}], \"traceTable\": {{\"A\": [{}]}}, \
         \"frameTable\": {{{text}}}}}",
        keys.join(", ")
    );
    let mut dump = dmd::analyze::read_from(dump.as_bytes(), &dmd::analyze::DumpReadOptions::new()).unwrap();
    dump.symbolize(&dmd::symbolize::SymbolOptions::new());
    let names: Vec<&str> = dump.frames().filter_map(|frame| frame.function).collect();
    assert!(names.iter().any(|name| name.contains("program::alone")), "{names:?}");
}

#[test]
fn the_last_dump_of_an_earlier_process_is_sent() {
    let _alone = program::alone();
    let file = |name: &str| std::path::Path::new(KEPT).join(name);
    std::fs::create_dir_all(KEPT).unwrap();
    for entry in std::fs::read_dir(KEPT).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let response = endpoint().respond("/memory/last", "", "");
    assert_eq!((response.status, line(&response)), (404, "no earlier process has left a dump"));
    std::fs::write(file("dmd.0000000000003.5.7.limit.json.gz"), "older").unwrap();
    std::fs::write(file("dmd.0000000000004.5.7.growth.json.gz"), "last").unwrap();
    std::fs::write(file("dmd.9000000000004.5.7.growth.json"), "another file").unwrap();
    let response = endpoint().respond("/memory/last", "", "");
    assert_eq!(response.header("content-disposition"), Some("attachment; filename=\"last.json.gz\""));
    assert_eq!(response.header("content-type"), Some("application/gzip"));
    assert_eq!(body(response), b"last");
    let small = Endpoint::with_options(EndpointOptions::new().max_bytes(3));
    assert_eq!(small.respond("/memory/last", "", "").status, 503);
    std::fs::remove_dir_all(KEPT).unwrap();
}

#[test]
fn a_snapshot_is_what_the_program_gives() {
    let _alone = program::alone();
    let response = endpoint().respond("/memory/snapshot", "", "");
    let disposition = "attachment; filename=\"heap.fxsnapshot\"";
    assert_eq!(response.header("content-disposition"), Some(disposition));
    let graph = snapshot::read_from(&*body(response), &snapshot::SnapshotReadOptions::new()).unwrap();
    // The root, the value, the value's block, and the blocks of 1,000 names.
    assert_eq!(graph.node_count(), 1003);

    let without = Endpoint::new().respond("/memory/snapshot", "", "");
    assert_eq!(
        (without.status, line(&without)),
        (404, "this program does not write heap snapshots: it does not call Endpoint::snapshot")
    );
}

#[test]
fn private_data_is_left_out_unless_asked_for() {
    let _alone = program::alone();
    let private = Endpoint::with_options(EndpointOptions::new().private(true));
    for (endpoint, is_private) in [(Endpoint::new(), false), (private, true)] {
        for path in ["/metrics", "/memory/report"] {
            let text = String::from_utf8(body(endpoint.respond(path, "", ""))).unwrap();
            assert_eq!(text.contains("secret.txt"), is_private, "{path}");
            assert_eq!(text.contains("<anonymized>"), !is_private, "{path}");
        }
    }
}

#[test]
fn bad_queries_are_refused() {
    let _alone = program::alone();
    let endpoint = Endpoint::with_options(EndpointOptions::new().max_seconds(5));
    for (path, query, message) in [
        ("/debug/pprof/heap", "seconds=0", "/debug/pprof/heap: seconds=0 is not a number from 1 to 5"),
        ("/debug/pprof/heap", "seconds=6", "/debug/pprof/heap: seconds=6 is not a number from 1 to 5"),
        ("/debug/pprof/heap", "seconds=-1", "/debug/pprof/heap: seconds=-1 is not a number from 1 to 5"),
        ("/debug/pprof/heap", "seconds", "/debug/pprof/heap: seconds= is not a number from 1 to 5"),
        ("/debug/pprof/heap", "seconds=1&seconds=2", "/debug/pprof/heap: seconds is given twice"),
        (
            "/debug/pprof/allocs",
            "debug=1",
            "/debug/pprof/allocs: debug=1 requests text; only debug=0, the format of pprof, is supported",
        ),
        ("/debug/pprof/heap", "gc=yes", "/debug/pprof/heap: gc=yes is neither 0 nor 1"),
        (
            "/debug/pprof/heap",
            "second=5",
            "/debug/pprof/heap: unknown parameter second; the path accepts only seconds, debug and gc",
        ),
        (
            "/metrics",
            "a\n\u{202e}b=1",
            "/metrics: unknown parameter a\\n\\u{202e}b; the path accepts no parameters",
        ),
        ("/memory/report", "gz", "/memory/report: unknown parameter gz; the path accepts no parameters"),
    ] {
        let response = endpoint.respond(path, query, "");
        assert_eq!((response.status, line(&response)), (400, message), "{path}?{query}");
        assert_eq!(response.header("x-go-pprof"), path.starts_with("/debug/").then_some("1"));
    }
    let long = endpoint.respond("/metrics", &"x".repeat(10_000), "");
    assert!(line(&long).len() < 120, "{}", line(&long));
    for path in ["", "/", "/metrics/", "/debug/pprof", "/debug/pprof/profile", "metrics", "/../metrics"] {
        let response = endpoint.respond(path, "", "");
        assert_eq!(response.status, 404, "{path}");
        assert!(line(&response).ends_with(&PATHS.join(", ")));
    }
}

#[test]
fn no_answer_may_be_kept_or_guessed_at() {
    let _alone = program::alone();
    for path in PATHS {
        let response = endpoint().respond(path, "", "");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}
