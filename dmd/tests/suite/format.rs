//! JSON of version 5 in the form that Firefox's `dmd.py` reads. The members that `dmd.py` needs exist, with the order
//! and the types of Firefox's dumps. DMD's own members are at places that `dmd.py` ignores. `read_dump` checks every
//! dump that a test reads.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const TOP: [&str; 5] = ["version", "invocation", "blockList", "traceTable", "frameTable"];
/// The members of a block, in the order in which Firefox writes them.
const BLOCK: [&str; 7] = ["addr", "contents", "req", "slop", "alloc", "reps", "num"];
const BLOCK_OURS: [&str; 4] = ["repPaths", "sampled", "swapped", "untouched"];

pub(crate) fn check(text: &str, dump: &Value) {
    let mut top: Vec<&str> = text.lines().filter_map(|line| key(line.strip_prefix(' ')?)).collect();
    if dump.get("blackBox").is_some() {
        // A black box writes these members first, in case the process is killed meanwhile.
        assert_eq!(top[2..4], ["blackBox", "modules"]);
        top.drain(2..4);
    }
    assert_eq!(top[..5], TOP);
    assert_eq!(dump["version"], 5);
    let invocation = dump["invocation"].as_object().unwrap();
    assert!(invocation["dmdEnvVar"].is_string() || invocation["dmdEnvVar"].is_null());
    let mode = invocation["mode"].as_str().unwrap();
    assert!(["live", "dark-matter", "cumulative", "scan"].contains(&mode), "{mode}");

    let traces = dump["traceTable"].as_object().unwrap();
    let mut used = BTreeSet::new();
    for block in dump["blockList"].as_array().unwrap() {
        check_block(block.as_object().unwrap(), mode, &mut used);
    }
    check_peak(dump, mode, &mut used);
    let areas = dump["mappings"]["list"].as_array().into_iter().flatten();
    used.extend(areas.filter_map(|area| area["alloc"].as_str()));
    assert_eq!(
        used,
        traces.keys().map(String::as_str).collect(),
        "the traces of blocks, now or at the peak, and of mappings"
    );
    let frames = dump["frameTable"].as_object().unwrap();
    let most = dump["sampling"]["maxFrames"].as_u64().unwrap() as usize;
    let mut used = BTreeSet::new();
    for trace in traces.values() {
        let trace = trace.as_array().unwrap();
        assert!(trace.len() <= most);
        used.extend(trace.iter().map(|key| key.as_str().unwrap()));
    }
    assert_eq!(used, frames.keys().map(String::as_str).collect(), "the frames of traces");
    for name in traces.keys().chain(frames.keys()) {
        assert!(name.bytes().all(|digit| matches!(digit, b'A'..=b'Z' | b'a'..=b'f')), "{name}");
    }
    assert!(traces.keys().all(|name| !frames.contains_key(name)), "traces and frames share one counter");
    for frame in frames.values() {
        check_frame(frame.as_str().unwrap());
    }
    check_lines(text, dump);
}

fn key(line: &str) -> Option<&str> {
    Some(line.strip_prefix('"')?.split_once('"')?.0)
}

fn check_block<'d>(block: &'d Map<String, Value>, mode: &str, traces: &mut BTreeSet<&'d str>) {
    for name in block.keys() {
        assert!(BLOCK.contains(&name.as_str()) || BLOCK_OURS.contains(&name.as_str()), "{name}");
    }
    let requested = block["req"].as_u64().unwrap();
    assert!(block.get("slop").is_none_or(|slop| slop.as_u64().unwrap() > 0));
    assert!(block.get("num").is_none_or(|number| mode != "scan" && number.as_u64().unwrap() > 1));
    assert_eq!(block.contains_key("addr"), mode == "scan");
    assert_eq!(block.contains_key("contents"), mode == "scan" && requested >= 8);
    if let Some(contents) = block.get("contents") {
        assert_eq!(contents.as_array().unwrap().len() as u64, requested / 8);
    }
    let words = block.get("contents").and_then(Value::as_array).into_iter().flatten();
    for word in block.get("addr").into_iter().chain(words) {
        let word = word.as_str().unwrap();
        let digits = word.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        assert!(digits && (word == "0" || !word.starts_with('0')), "{word}");
    }
    if let Some(reports) = block.get("reps") {
        let reports = reports.as_array().unwrap();
        assert!(mode == "dark-matter" && (1..=2).contains(&reports.len()));
        traces.extend(reports.iter().map(|key| key.as_str().unwrap()));
    }
    traces.extend(block.get("alloc").map(|key| key.as_str().unwrap()));
}

/// Checks the state at the peak, which Firefox does not have.
fn check_peak<'d>(dump: &'d Value, mode: &str, traces: &mut BTreeSet<&'d str>) {
    match dump["statistics"].as_object() {
        // A sample contains no number of allocations.
        None => assert!(dump["invocation"]["sampleBytes"].is_number()),
        Some(statistics) => {
            let names = ["seconds", "allocations", "frees", "reallocations", "temporary"];
            assert!(
                statistics.len() == names.len() && names.iter().all(|name| statistics[*name].is_number())
            );
        }
    }
    // A scan dump has no peak. Another dump has no peak if memory was short.
    assert!(dump["peak"].is_null() || mode != "scan");
    let Some(peak) = dump["peak"].as_object() else { return };
    let (mut bytes, mut blocks) = (0, 0);
    for stack in peak["stacks"].as_array().unwrap() {
        let amount = |name: &str| stack[name].as_u64().filter(|amount| *amount > 0).unwrap();
        bytes += amount("bytes");
        blocks += amount("num");
        traces.extend(stack.get("alloc").map(|key| key.as_str().unwrap()));
    }
    assert_eq!((peak["bytes"].as_u64(), peak["blocks"].as_u64()), (Some(bytes), Some(blocks)));
    assert!(peak["within"].is_u64() && peak["seconds"].is_number());
}

fn check_frame(frame: &str) {
    assert!(frame.len() <= 1023);
    let text = frame.strip_prefix("#00: ").unwrap_or_else(|| panic!("{frame}"));
    let place = text.strip_suffix(']').and_then(|text| text.rsplit_once(" +0x"));
    let is_place = place.is_some_and(|(library, offset)| {
        library.starts_with("???[") && u64::from_str_radix(offset, 16).is_ok()
    });
    assert!(is_place || text == "??? (???:???)", "{frame}");
}

/// Each block, trace and frame has its own line: Firefox's scripts that fix stacks work line by line.
fn check_lines(text: &str, dump: &Value) {
    let lines = |section: &str| {
        let start = text.find(&format!("\n \"{section}\": ")).unwrap() + 1;
        text[start..].lines().skip(1).take_while(|line| line.starts_with("  ")).collect::<Vec<_>>()
    };
    let blocks = lines("blockList");
    assert_eq!(blocks.len(), dump["blockList"].as_array().unwrap().len());
    for line in blocks {
        assert!(line.starts_with("  {\""), "{line}");
        let places = BLOCK.map(|name| line.find(&format!("\"{name}\": ")));
        assert!(places.iter().flatten().is_sorted(), "{line}");
    }
    assert_eq!(lines("traceTable").len(), dump["traceTable"].as_object().unwrap().len());
    assert_eq!(lines("frameTable").len(), dump["frameTable"].as_object().unwrap().len());
}
