//! The resident memory of dumps: of blocks, of mappings, and of the whole process.

use dmd::analyze::program::{MemoryArea, MemoryOwner, ProgramOptions, ResidentMemory, ResidentOwner};
use dmd::analyze::{self, Analysis, AnalyzeOptions, RecordKind};
use serde_json::Value;

use crate::support::{preloaded, read_dump, succeed, victim};

/// The lines that the victim prints: the kind, the name and the numbers of each.
fn expectations(stdout: &[u8]) -> Vec<(String, String, Vec<u64>)> {
    let lines = std::str::from_utf8(stdout).unwrap().lines();
    let parsed = lines.map(|line| {
        let mut words = line.split(' ');
        let (kind, name) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        (kind, name, words.map(|word| word.parse().unwrap()).collect())
    });
    parsed.collect()
}

fn number(object: &Value, key: &str) -> u64 {
    object.get(key).map_or(0, |number| number.as_u64().unwrap())
}

#[test]
fn shapes_of_memory_have_the_expected_pages() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let options = "--mode=live --stacks=full --quiet";
    let output = succeed(preloaded(victim("resident"), options).arg(folder.path()));
    let dump = read_dump(&file);
    let areas = dump["mappings"]["list"].as_array().unwrap();
    for (kind, name, numbers) in expectations(&output.stdout) {
        match (&*kind, &*numbers) {
            ("block", [requested, count, resident, swapped]) => {
                let blocks = dump["blockList"].as_array().unwrap().iter();
                let (mut found, mut usable, mut absent, mut out) = (0, 0, 0, 0);
                for block in blocks.filter(|block| block["req"] == *requested) {
                    let num = block.get("num").map_or(1, |num| num.as_u64().unwrap());
                    found += num;
                    usable += num * (requested + number(block, "slop"));
                    absent += number(block, "untouched") + number(block, "swapped");
                    out += number(block, "swapped");
                }
                assert_eq!((found, usable - absent, out), (*count, *resident, *swapped), "{name}");
            }
            ("area", [start, bytes, resident, swapped]) => {
                let range = *start..start + bytes;
                let of_range = |area: &&Value| {
                    let start = u64::from_str_radix(area["start"].as_str().unwrap(), 16).unwrap();
                    range.contains(&start)
                };
                let mut sums = [0; 3];
                for area in areas.iter().filter(of_range) {
                    assert_eq!(area["owner"], "mapping", "{name}: {area}");
                    let stack = area["alloc"].as_str().unwrap();
                    assert!(!dump["traceTable"][stack].as_array().unwrap().is_empty(), "{name}");
                    for (sum, key) in sums.iter_mut().zip(["bytes", "resident", "swapped"]) {
                        *sum += number(area, key);
                    }
                }
                assert_eq!(sums, [*bytes, *resident, *swapped], "{name}");
            }
            ("stack", [least]) => {
                let is_it = |area: &&Value| area["owner"] == "stack" && area["name"] == *name;
                let resident = number(areas.iter().find(is_it).unwrap(), "resident");
                assert!((*least..least + (256 << 10)).contains(&resident), "{name}: {resident}");
            }
            _ => panic!("{kind} {name} {numbers:?}"),
        }
    }
    adds_up(&file);
}

/// The areas add up to the kernel's sum, and the blocks of areas to the blocks of the dump.
fn adds_up(file: &std::path::Path) {
    let dump = analyze::read(file).unwrap();
    let memory = dump.memory().unwrap();
    let sum = memory.areas.iter().map(|area| area.resident).sum::<u64>();
    assert_eq!(sum, memory.resident);
    for area in &memory.areas {
        assert!(area.live_resident + area.live_swapped <= area.live, "{area:?}");
        assert!(area.live_resident <= area.resident, "{area:?}");
        assert!(area.resident + area.swapped <= area.bytes, "{area:?}");
    }
    let of_areas = |amount: fn(&MemoryArea) -> u64| memory.areas.iter().map(amount).sum::<u64>();
    let [blocks, live, resident] =
        [of_areas(|area| area.blocks), of_areas(|area| area.live), of_areas(|area| area.live_resident)];
    assert!(memory.areas.iter().any(|area| area.owner == MemoryOwner::Dmd && area.resident > 0));
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    assert_eq!([sums.num, sums.usable(), sums.resident()], [blocks, live, resident].map(i128::from));
}

#[test]
fn the_wrapper_knows_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("peak.json");
    let options = "--mode=live --stacks=full --quiet";
    let mut command = crate::support::command(victim("peak"));
    succeed(command.env("DMD", options).arg("at-end").arg(&file));
    read_dump(&file);
    let dump = analyze::read(&file).unwrap();
    let memory = dump.memory().unwrap();
    assert_eq!(memory.areas.iter().map(|area| area.resident).sum::<u64>(), memory.resident);
    dump.check_resident().unwrap();
}

#[test]
fn the_option_leaves_the_pages_out() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--mode=live --stacks=full --quiet --resident=no";
    succeed(preloaded(victim("resident"), options).arg(folder.path()));
    let file = folder.path().join("dump.json");
    let dump = read_dump(&file);
    assert!(dump.get("mappings").is_none());
    assert!(dump["blockList"].as_array().unwrap().iter().all(|block| block.get("untouched").is_none()));
    let error = analyze::read(&file).unwrap().check_resident().unwrap_err().to_string();
    assert!(error.starts_with("the dump has no resident bytes"), "{error}");
}

/// A sample has a part of the blocks, and the rows still add up.
#[test]
fn a_sample_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    succeed(preloaded(victim("resident"), "--sample-bytes=64KiB --quiet").arg(folder.path()));
    let file = folder.path().join("dump.json");
    read_dump(&file);
    let dump = analyze::read(&file).unwrap();
    let memory = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap();
    assert_eq!(memory.rows.iter().map(|row| row.resident).sum::<i128>(), i128::from(memory.resident));
    let live = memory.rows.iter().find(|row| row.owner == ResidentOwner::LiveBlocks).unwrap();
    // The half-touched block of 4 MiB is always in the sample.
    assert!(live.resident > 2_000_000, "{memory}");
}
