//! The history of recordings: golden text, and figures that a naive count checks.

use dmd_analyze::program::{ProgramOptions, UsageHistory};
use dmd_format::recording::BlockAction;
use serde_json::Value;

use super::script::{Script, random};
use crate::views::golden;

/// A server that starts, answers requests, fills a cache that only grows, and loses a few blocks.
pub(crate) fn server() -> Script {
    let mut script = Script::new();
    let start = script.stack(&[0x100, 0x110]);
    let request = script.stack(&[0x200, 0x210, 0x220]);
    let cache = script.stack(&[0x200, 0x210, 0x230]);
    let lost = script.stack(&[0x200, 0x240]);
    script.begin(0, 1, 0x10_0000, 1 << 20, start);
    let (mut place, mut size) = (0x30_0000, 64);
    script.begin(10, 1, place, size, cache);
    for n in 0..1000_u64 {
        let at = 1000 + 1000 * n;
        let worker = 2 + (n % 3) as u32;
        let block = 0x100_0000 + 0x1000 * n;
        script.begin(at, worker, block, 512 + n, request);
        // Most requests end at once; another thread ends some of them.
        match n % 10 {
            0 => script.end(at + 5000, 1, block),
            1 => script.end(at + 900, worker, block),
            _ => script.end(at + 7, worker, block),
        }
        if n.is_power_of_two() {
            let to = place + 0x100_0000 * n;
            script.resize(at + 20, 1, place, to, size * 2, cache);
            (place, size) = (to, size * 2);
        }
        if n % 100 == 99 {
            script.begin(at + 30, worker, 0x5000_0000 + 0x1000 * n, 4000, lost);
        }
    }
    script.end(1_010_000, 1, 0x10_0000);
    for events in script.events.values_mut() {
        events.sort_by_key(|event| event.tick);
    }
    script
}

fn history(script: &Script) -> UsageHistory {
    UsageHistory::new(&mut script.recording(), &ProgramOptions::new(), |_| ()).unwrap()
}

#[test]
fn the_text_shows_the_whole_life_of_the_heap() {
    let history = history(&server());
    let options = ProgramOptions::new();
    let text = history.text(5, &options).to_string();
    golden("history.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 100 && line == line.trim_end()), "{text}");
    let narrow = ProgramOptions::new().width(80);
    let text = history.text(5, &narrow).to_string();
    // The first lines are the same in all views.
    assert!(text.lines().skip(3).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_json_has_the_same_figures() {
    let json: Value = serde_json::from_str(&history(&server()).json(usize::MAX).to_string()).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["command"][1], "--port=80");
    assert_eq!(json["complete"], true);
    assert_eq!(json["allocations"], 1012);
    assert_eq!(json["reallocations"], 10);
    assert_eq!(json["frees"], 1001);
    let total = &json["total"];
    assert_eq!(total["allocations"], 1022);
    assert_eq!(total["atEnd"], json["end"]["bytes"]);
    assert_eq!(total["highest"], json["peak"]["bytes"]);
    assert_eq!(total["atPeak"], json["peak"]["bytes"]);
    assert_eq!(total["live"].as_array().unwrap().len(), 240);
    let grown = &json["grown"][0];
    // 64 bytes became 128, and so on ten times. A move copies the old contents.
    assert_eq!(grown["moves"], 10);
    assert_eq!(grown["copied"], 64 * 1023);
    assert_eq!(grown["largest"]["from"], 64);
    assert_eq!(grown["largest"]["to"], 65536);
    let freed: u64 =
        json["freedByOthers"].as_array().unwrap().iter().map(|pair| pair["blocks"].as_u64().unwrap()).sum();
    assert_eq!(freed, 100);
    assert_eq!(json["freedByOthers"][0]["freedBy"], "worker-1 (101)");
}

/// The sums of each kind of row equal the sums of the whole heap.
#[test]
fn rows_add_up_to_the_whole() {
    for (seed, threads) in [(1, 1), (2, 3), (3, 8)] {
        let script = random(0x9999_1234 + seed, 4000, threads);
        let json: Value = serde_json::from_str(&history(&script).json(usize::MAX).to_string()).unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        let total = &json["total"];
        for kind in ["sites", "types", "threads"] {
            for figure in ["atPeak", "atEnd", "allocations", "allocated", "temporary"] {
                let sum: u64 = json[kind].as_array().unwrap().iter().map(|row| number(&row[figure])).sum();
                assert_eq!(sum, number(&total[figure]), "{kind} {figure}");
            }
        }
        assert_eq!(total["temporary"], json["temporary"]);
        let made: u64 = total["made"].as_array().unwrap().iter().map(number).sum();
        assert_eq!(made, number(&total["allocations"]));
        let sizes: u64 = total["sizes"].as_array().unwrap().iter().map(|class| number(&class[1])).sum();
        assert_eq!(sizes, made);
        let lives: u64 = total["lives"].as_array().unwrap().iter().map(|class| number(&class[1])).sum();
        assert_eq!(lives, number(&json["frees"]));
        let begins = |what: &BlockAction| matches!(what, BlockAction::Begin(_));
        let begun = script.events.values().flatten().filter(|event| begins(&event.what)).count();
        assert_eq!(made, begun as u64);
    }
}

#[test]
fn an_empty_recording_has_a_history() {
    let script = Script::new();
    let text = history(&script).text(5, &ProgramOptions::new()).to_string();
    assert!(text.contains("Peak: 0 B in 0 blocks"), "{text}");
}
