//! Chrome's trace events.

use memory_export::ExportError;
use memory_export::chrome_trace::{Counter, Counters, write};
use serde_json::Value as Json;

use crate::inputs::{BEYOND, HOSTILE};

#[test]
fn each_amount_is_an_event() {
    let counter = |process: &str, path: &str| Counter {
        process: process.to_owned(),
        path: path.to_owned(),
        unit: "bytes".to_owned(),
        amounts: vec![Some(1), None, Some(-(1 << 53))],
    };
    let counters: Vec<Counter> =
        HOSTILE.iter().flat_map(|name| [counter(name, "explicit"), counter("", name)]).collect();
    let mut file = Vec::new();
    write(&Counters { times: vec![10, 20, 30], counters }, &mut file).unwrap();
    let json: Json = serde_json::from_slice(&file).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(move |event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("C").len(), 2 * 2 * HOSTILE.len());
    let names: Vec<&str> = of("M").iter().map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), HOSTILE.len(), "the empty name stands for all processes: {names:?}");
    for event in of("C") {
        assert!(event["ts"] == 10 && event["args"]["bytes"] == 1 || event["ts"] == 30);
        assert!((1..=names.len() as u64).contains(&event["pid"].as_u64().unwrap()));
    }
}

#[test]
fn no_counter_is_a_file_too() {
    let mut file = Vec::new();
    write(&Counters::default(), &mut file).unwrap();
    let json: Json = serde_json::from_slice(&file).unwrap();
    assert_eq!(json["traceEvents"].as_array().unwrap().len(), 0);
}

#[test]
fn amounts_beyond_doubles_are_an_error() {
    let counter = Counter { amounts: vec![Some(BEYOND.into())], ..Counter::default() };
    let error = write(&Counters { times: vec![0], counters: vec![counter] }, Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge(..)));
}
