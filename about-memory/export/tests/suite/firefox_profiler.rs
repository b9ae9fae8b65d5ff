//! The Firefox Profiler's processed profile.

use std::time::Duration;

use memory_export::firefox_profiler::write;
use memory_export::{ExportError, ProfileEvent, ProfileValue, StackProfile, StackProfileBuilder};
use serde_json::Value as Json;

use crate::inputs::{self, BEYOND, HOSTILE};

fn length(table: &Json) -> u64 {
    let length = table["length"].as_u64().unwrap();
    for (name, column) in table.as_object().unwrap() {
        assert!(column.as_array().is_none_or(|column| column.len() as u64 == length), "{name}");
    }
    length
}

fn sum(column: &Json) -> i128 {
    column.as_array().unwrap().iter().map(|number| i128::from(number.as_i64().unwrap())).sum()
}

fn written(stacks: &StackProfile, history: Vec<ProfileEvent>) -> Json {
    let mut file = Vec::new();
    write(stacks, history, &mut file).unwrap();
    let json: Json = serde_json::from_slice(&file).unwrap();
    assert_eq!(json["meta"]["preprocessedProfileVersion"], 55);
    let thread = &json["threads"][0];
    let texts = thread["stringArray"].as_array().unwrap().len() as u64;
    let tables = [
        "samples",
        "nativeAllocations",
        "frameTable",
        "funcTable",
        "stackTable",
        "resourceTable",
        "nativeSymbols",
    ];
    let [samples, allocations, frames, functions, nodes, ..] = tables.map(|name| length(&thread[name]));
    assert_eq!(samples, allocations);
    let below = |table: &str, column: &str, most: u64| {
        let column = thread[table][column].as_array().unwrap();
        assert!(column.iter().all(|index| index.is_null() || index.as_u64().unwrap() < most), "{table}");
    };
    below("samples", "stack", nodes);
    below("stackTable", "frame", frames);
    below("frameTable", "func", functions);
    below("funcTable", "name", texts);
    below("funcTable", "fileName", texts);
    for (index, prefix) in thread["stackTable"]["prefix"].as_array().unwrap().iter().enumerate() {
        assert!(prefix.is_null() || prefix.as_u64().unwrap() < index as u64);
    }
    length(&json["counters"][0]["samples"]);
    json
}

#[test]
fn sums_are_those_of_the_stacks() {
    let difference = ("difference", inputs::with_amounts(-2, -50));
    for (name, stacks) in inputs::ordinary().into_iter().chain([difference]) {
        println!("{name}");
        let json = written(&stacks, Vec::new());
        for table in ["samples", "nativeAllocations"] {
            let table = &json["threads"][0][table];
            assert_eq!(Some(sum(&table["weight"])), stacks.total(ProfileValue::LiveBytes));
            assert_eq!(table["weightType"], "bytes");
        }
        assert_eq!(
            Some(sum(&json["counters"][0]["samples"]["count"])),
            stacks.total(ProfileValue::LiveBytes)
        );
    }
}

#[test]
fn functions_have_their_files_and_lines() {
    let json = written(&inputs::hostile(), Vec::new());
    let thread = &json["threads"][0];
    let text = |index: &Json| thread["stringArray"][index.as_u64().unwrap() as usize].as_str().unwrap();
    let functions = &thread["funcTable"];
    for name in HOSTILE {
        let names = functions["name"].as_array().unwrap();
        let place = names.iter().position(|index| text(index) == name).unwrap();
        assert_eq!(text(&functions["fileName"][place]), name);
        let frames = thread["frameTable"]["func"].as_array().unwrap();
        let frame = frames.iter().position(|function| function.as_u64() == Some(place as u64)).unwrap();
        assert_eq!(thread["frameTable"]["line"][frame], 7);
    }
}

#[test]
fn a_history_is_the_memory_track() {
    let mut builder = StackProfileBuilder::new(&inputs::LIVE);
    builder.facts().duration = Some(Duration::from_secs(1));
    let stack = builder.stack(&[]);
    let (stacks, new) = builder.finish_with_stacks().unwrap();
    let event = |at: u64, size, is_free| {
        new.event(ProfileEvent::new(Duration::from_millis(at), stack, size, is_free))
    };
    let history =
        (0..100_000).map(|at| event(at / 100, 8, at % 2 == 1)).chain([event(1000, 100, false)]).collect();
    let json = written(&stacks, history);
    let samples = &json["counters"][0]["samples"];
    assert_eq!(sum(&samples["count"]), 100);
    assert!((2..=10_001).contains(&length(samples)));
}

#[test]
fn amounts_beyond_doubles_are_an_error() {
    let error = write(&inputs::with_amounts(1, BEYOND), [], Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge("the Firefox Profiler", "live bytes", ..)));
}
