//! Recordings made by the tests, and their replay.

mod growth;
mod history;
mod hostile;
mod leaks;
mod mapped;
pub(crate) mod script;
mod timeline;

use std::collections::BTreeMap;
use std::time::Duration;

use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{Analysis, AnalyzeOptions, Dump, DumpTime, Mode, RecordKind};
use dmd_format::recording::{BlockAction, LiveBlock, RecordedBlock, RecordedModule};
use script::{BASE, Script, random};

fn after(microseconds: u64) -> Moment {
    Moment::After(Duration::from_micros(microseconds))
}

/// Blocks and requested bytes.
fn sums(dump: Dump) -> (i128, i128) {
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    (sums.num, sums.req)
}

fn at(recording: &mut Recording, moment: Moment) -> (i128, i128) {
    sums(recording.state_at(moment).unwrap())
}

#[test]
fn the_state_at_a_time_has_what_happened_until_then() {
    let mut recording = Script::small().recording();
    for (moment, expected) in [
        (after(0), (0, 0)),
        (after(9), (0, 0)),
        (after(10), (1, 100)),
        (after(20), (2, 1100)),
        (after(30), (2, 2100)),
        (after(45), (3, 2150)),
        (Moment::Peak, (3, 2150)),
        (after(50), (2, 2100)),
        (after(60), (1, 100)),
        (Moment::End, (2, 107)),
        (after(1_000_000), (2, 107)),
    ] {
        assert_eq!(at(&mut recording, moment), expected, "{moment}");
    }
    assert!(recording.warnings().is_empty(), "{:?}", recording.warnings());
}

#[test]
fn the_outline_has_the_facts_of_the_whole() {
    let mut recording = Script::small().recording();
    let outline = recording.outline().unwrap();
    assert_eq!(outline.command, ["server", "--port=80"]);
    assert_eq!(outline.process, 77);
    assert_eq!((outline.peak.bytes, outline.peak.blocks), (2150, 3));
    assert_eq!(outline.peak.time, Duration::from_micros(40));
    assert_eq!((outline.end.bytes, outline.end.blocks), (107, 2));
    assert_eq!(outline.end.time, Duration::from_micros(70));
    let statistics = outline.statistics;
    assert_eq!((statistics.allocations, statistics.frees, statistics.reallocations), (4, 2, 1));
    // Two blocks ended by a move. Only the first block was the last allocation of its thread.
    assert_eq!(statistics.temporary, 1);
    assert_eq!(outline.threads, 2);
    assert!(outline.is_complete);
    assert_eq!(recording.usual_moment().unwrap(), Moment::Peak);
}

#[test]
fn a_window_has_what_was_allocated_in_it_and_is_alive_at_its_end() {
    let mut recording = Script::small().recording();
    for (from, to, expected) in [
        (after(0), Moment::End, (2, 107)),
        (after(10), Moment::End, (1, 7)),
        (after(9), after(20), (2, 1100)),
        (after(25), after(45), (2, 2050)),
        (after(25), after(55), (1, 2000)),
        (Moment::Peak, Moment::End, (1, 7)),
        (Moment::End, Moment::End, (0, 0)),
    ] {
        let dump = recording.between(from, to).unwrap();
        assert_eq!(sums(dump), expected, "{from} to {to}");
    }
    let error = recording.between(Moment::End, after(5)).unwrap_err();
    assert_eq!(error.to_string(), "the window ends at 0.00 s, before it starts at 0.00 s");
}

#[test]
fn a_dump_of_a_recording_has_its_stacks_and_modules() {
    let mut script = Script::small();
    let of_library = script.stack(&[0x10, 0x20_0000]);
    script.begin(80, 1, 0x9000, 11, of_library);
    script.begin(81, 1, 0xa000, 12, 0);
    let mut library = RecordedModule {
        path: b"/lib/a.so".to_vec(),
        build_id: "aa".to_owned(),
        ..RecordedModule::default()
    };
    (library.start, library.end, library.bias) = (BASE + 0x20_0000, BASE + 0x30_0000, BASE + 0x10_0000);
    script.modules.push(library);
    let dump = script.recording().state_at(Moment::End).unwrap();
    assert_eq!(dump.mode(), Mode::Live);
    assert!(dump.has_modules());
    assert!(dump.statistics().is_some());
    let text = Analysis::new(dump, &AnalyzeOptions::new()).text(&[]).to_string();
    assert!(text.contains("#01: ???[/lib/a.so +0x100000]"), "{text}");
    assert!(text.contains("#02: ???[/app/server +0x10]"), "{text}");
    assert!(text.contains("#01: (no stack trace recorded"), "{text}");
}

#[test]
fn a_library_that_was_unloaded_keeps_its_calls() {
    let mut script = Script::new();
    let stack = script.stack(&[0x20_0000]);
    script.begin(1, 1, 0x1000, 1, stack);
    let library = |path: &[u8], since| RecordedModule {
        path: path.to_vec(),
        start: BASE + 0x20_0000,
        end: BASE + 0x21_0000,
        bias: BASE + 0x20_0000,
        unloaded_since: Some(since),
        ..RecordedModule::default()
    };
    script.modules.extend([library(b"/lib/new.so", 2), library(b"/lib/old.so", 1)]);
    let dump = script.recording().state_at(Moment::End).unwrap();
    let text = Analysis::new(dump, &AnalyzeOptions::new()).text(&[]).to_string();
    assert!(text.contains("#01: ???[/lib/old.so +0x0]"), "{text}");
}

#[test]
fn blocks_that_are_older_than_the_recording_are_alive_but_not_allocated() {
    let mut script = Script::small();
    let block =
        |address, requested| LiveBlock { address, block: RecordedBlock { requested, slop: 8, stack: 1 } };
    script.older = vec![block(0x100, 5000), block(0x200, 1)];
    script.end(90, 2, 0x100);
    let mut recording = script.recording();
    assert_eq!(at(&mut recording, after(0)), (2, 5001));
    assert_eq!(at(&mut recording, Moment::End), (3, 108));
    assert_eq!(sums(recording.between(after(0), Moment::End).unwrap()), (2, 107));
    let outline = recording.outline().unwrap();
    assert_eq!((outline.older.bytes, outline.older.blocks), (5017, 2));
    assert_eq!((outline.peak.bytes, outline.statistics.allocations), (7167, 4));
}

#[test]
fn a_block_that_did_not_move_is_the_block_it_was() {
    let mut script = Script::new();
    let (first, second) = (script.stack(&[0x10]), script.stack(&[0x20]));
    script.begin(1, 1, 0x1000, 100, first);
    script.push(5, 1, 0x1000, BlockAction::EndByMove(None));
    script.push(6, 1, 0x1000, BlockAction::Back(RecordedBlock { requested: 100, slop: 0, stack: first }));
    script.begin(7, 1, 0x2000, 30, second);
    let mut recording = script.recording();
    assert_eq!(at(&mut recording, Moment::End), (2, 130));
    assert_eq!(sums(recording.between(after(4), Moment::End).unwrap()), (1, 30));
    let statistics = recording.outline().unwrap().statistics;
    assert_eq!((statistics.allocations, statistics.reallocations), (2, 0));
}

/// Replays a script slowly. Returns the live blocks at a time, and the highest sum of requested bytes until then.
fn naive(script: &Script, until: u64) -> (BTreeMap<u64, u64>, u64) {
    let start = 1_000_000;
    let mut all: Vec<_> = script.events.values().flatten().collect();
    let begins = |what: &BlockAction| matches!(what, BlockAction::Begin(_) | BlockAction::Back(_));
    all.sort_by_key(|event| (event.tick, begins(&event.what)));
    let (mut live, mut peak) = (BTreeMap::new(), 0);
    for event in all.into_iter().filter(|event| event.tick <= start + until * script::MICROSECOND) {
        match event.what {
            BlockAction::Begin(block) | BlockAction::Back(block) => {
                live.insert(event.address, block.requested);
            }
            BlockAction::End(_) | BlockAction::EndByMove(_) => {
                live.remove(&event.address);
            }
        }
        peak = peak.max(live.values().sum());
    }
    (live, peak)
}

#[test]
fn threads_are_merged_in_the_order_of_their_ticks() {
    for (seed, threads, chunk) in [(1, 1, 1000), (2, 2, 7), (3, 8, 1), (4, 8, 50), (5, 40, 13)] {
        let mut script = random(88_172_645_463_325_252 + seed, 3000, threads);
        script.chunk = chunk;
        let mut recording = script.recording();
        for until in (0..3000).step_by(311).chain([5000]) {
            let (live, _) = naive(&script, until);
            let expected = (live.len() as i128, i128::from(live.values().sum::<u64>()));
            assert_eq!(at(&mut recording, after(until)), expected, "seed {seed} at {until}");
        }
        let (_, peak) = naive(&script, 5000);
        let outline = recording.outline().unwrap();
        assert_eq!(outline.peak.bytes, peak.into());
        assert_eq!(at(&mut recording, Moment::Peak).1, peak.into());
        assert!(recording.warnings().is_empty(), "{:?}", recording.warnings());
    }
}

#[test]
fn a_killed_process_leaves_what_its_file_has() {
    let mut script = Script::small();
    script.end = None;
    let mut recording = script.recording();
    assert_eq!(at(&mut recording, Moment::End), (2, 107));
    assert!(!recording.outline().unwrap().is_complete);
    assert_eq!(
        recording.warnings(),
        [
            "the recording has no end: the process was killed, or the disk was full; events after 0.00 s may be missing"
        ]
    );
}

#[test]
fn a_dump_of_a_recording_has_one_time_only() {
    let mut recording = Script::small().recording();
    assert!(recording.state_at(Moment::Peak).unwrap().at(DumpTime::Peak).is_ok());
    let error = recording.state_at(Moment::End).unwrap().at(DumpTime::Peak).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the dump does not have the blocks of that time: only a recording has the blocks of every time"
    );
}

#[test]
fn changes_add_up_to_the_states() {
    let moments = [after(0), after(700), Moment::Peak, after(1999), Moment::End];
    for seed in 1..20 {
        let mut script = random(seed, 2000, 3);
        let older = RecordedBlock { requested: 77, slop: 3, stack: 2 };
        script.older = vec![LiveBlock { address: 0x10, block: older }];
        let mut recording = script.recording();
        for to in moments {
            for from in [None].into_iter().chain(moments.map(Some)) {
                let expected = match from {
                    None => recording.state_at(to),
                    Some(from) => recording.between(from, to),
                };
                let changes = recording.changes(from, to);
                let (Ok(expected), Ok(changes)) = (expected, changes) else {
                    // `between` and `changes` reject a window that ends before it starts.
                    assert!(from.is_some(), "{from:?} {to}");
                    continue;
                };
                let mut live = (0, 0);
                let mut last = Duration::ZERO;
                for change in changes {
                    let change = change.unwrap();
                    assert!(last <= change.time && change.since <= change.time, "{change:?}");
                    last = change.time;
                    let sign = if change.is_end { -1 } else { 1 };
                    live.0 += sign;
                    live.1 += sign * i128::from(change.requested);
                    assert_eq!(change.thread.is_none(), change.slop == 3, "{change:?}");
                }
                assert_eq!(live, sums(expected), "seed {seed}, {from:?} {to}");
            }
        }
    }
}
