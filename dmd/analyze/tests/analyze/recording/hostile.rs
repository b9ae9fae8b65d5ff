//! Damaged and hostile recordings: the reader must not panic, must keep all good data, and must report each fault with
//! its place.

use std::collections::BTreeMap;
use std::io::Cursor;

use dmd_analyze::DumpReadOptions;
use dmd_analyze::recording::{Moment, Recording};
use dmd_format::recording::{
    CHUNK_HEADER, ChunkKind, ChunkReader, MAGIC, NodeEncoder, StackNode, push_chunk,
};

use super::script::{Random, Script, random};
use super::{after, at};

fn open(bytes: Vec<u8>) -> Result<Recording, String> {
    let options = DumpReadOptions::new().max_entries(200_000);
    Recording::from_file(Cursor::new(bytes), &options).map_err(|error| error.to_string())
}

/// Calls every function. Errors are fine, panics are not.
fn ask(bytes: Vec<u8>) {
    let Ok(mut recording) = open(bytes) else { return };
    for moment in [Moment::Peak, Moment::End, after(700)] {
        let _ = recording.state_at(moment);
    }
    let _ = recording.between(after(5), Moment::End);
    // Even for damaged files, begins minus ends must equal the live blocks.
    let Ok(end) = recording.state_at(Moment::End) else { return };
    let (mut blocks, mut bytes) = (0, 0);
    let mut live: BTreeMap<_, u64> = BTreeMap::new();
    for change in recording.changes(None, Moment::End).unwrap() {
        let Ok(change) = change else { return };
        let alike = live.entry((change.stack, change.thread, change.requested, change.slop)).or_default();
        let sign = if change.is_end { -1 } else { 1 };
        *alike = alike.checked_add_signed(sign).expect("a block begins before it ends");
        blocks += i128::from(sign);
        bytes += i128::from(sign) * i128::from(change.requested);
    }
    assert_eq!((blocks, bytes), super::sums(end));
    assert!(recording.warnings().len() <= 25);
}

#[test]
fn damaged_recordings_never_panic() {
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let (step, changed) = if is_thorough { (3, 4000) } else { (61, 400) };
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut script = super::random(3, 500, 3);
    script.chunk = 40;
    let whole = script.bytes();
    for end in (0..whole.len()).step_by(step) {
        ask(whole[..end].to_vec());
    }
    for _ in 0..changed {
        let mut damaged = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len());
            damaged[at] = if random.below(2) == 0 {
                damaged[at] ^ (1 << random.below(8))
            } else {
                random.below(256) as u8
            };
        }
        ask(damaged);
    }
}

/// Changed payloads with valid checksums.
#[test]
fn chunks_with_good_checksums_and_bad_payloads_never_panic() {
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let changed = if is_thorough { 4000 } else { 400 };
    let mut random = Random(0xfeed_5678_9abc_def1);
    let mut script = super::random(4, 500, 3);
    script.chunk = 40;
    for at in 0..200 {
        let map = (random.below(3) > 0).then(|| (1 + random.below(3) as u32, random.below(2) == 0));
        script.map(at, random.below(40) as u64, 1 + random.below(9) as u64, map);
    }
    let whole = script.bytes();
    for _ in 0..changed {
        let mut file = MAGIC.to_vec();
        let mut chunks = ChunkReader::open(&whole[..]).unwrap();
        while let Some(chunk) = chunks.next() {
            let chunk = chunk.unwrap();
            let mut payload = chunk.payload.to_vec();
            if random.below(4) == 0 && !payload.is_empty() {
                for _ in 0..=random.below(4) {
                    let at = random.below(payload.len());
                    payload[at] = random.below(256) as u8;
                }
                payload.truncate(1 + random.below(2 * payload.len()));
            }
            push_chunk(&mut file, chunk.kind().unwrap(), &payload);
        }
        ask(file);
    }
}

/// The places and kinds of the chunks of a file.
fn places(file: &[u8]) -> Vec<(ChunkKind, u64)> {
    let mut chunks = ChunkReader::open(file).unwrap();
    let mut places = Vec::new();
    while let Some(chunk) = chunks.next() {
        let chunk = chunk.unwrap();
        places.push((chunk.kind().unwrap(), chunk.offset));
    }
    places
}

#[test]
fn damage_costs_only_the_chunk_that_has_it() {
    let mut script = random(7, 2000, 1);
    script.chunk = 500;
    let whole = script.bytes();
    let places = places(&whole);
    let events: Vec<usize> = (0..places.len()).filter(|at| places[*at].0 == ChunkKind::Events).collect();
    let (second, third) = (places[events[1]].1, places[events[1] + 1].1);
    let mut clean = open(whole.clone()).unwrap();
    let before = at(&mut clean, after(300));
    // If the damage is in the header, the length in the header may point to a wrong place.
    for place in [second as usize, second as usize + 9, second as usize + CHUNK_HEADER + 5] {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x55;
        let mut recording = open(damaged).unwrap();
        assert_eq!(at(&mut recording, after(300)), before);
        let (blocks, bytes) = at(&mut recording, Moment::End);
        assert!(blocks > 0 && bytes > 0);
        let warnings = recording.warnings();
        assert_eq!(warnings[0], format!("bytes {second} to {third} are damaged, and left out"));
        assert!(
            warnings[1].ends_with(" blocks were freed or moved, but their allocation is not in the file"),
            "{warnings:?}"
        );
    }
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_there() {
    let mut script = random(7, 2000, 1);
    script.chunk = 500;
    let whole = script.bytes();
    let last = places(&whole).iter().rfind(|(kind, _)| *kind == ChunkKind::Events).unwrap().1;
    let mut clean = open(whole.clone()).unwrap();
    let mut cut = open(whole[..last as usize + 20].to_vec()).unwrap();
    assert_eq!(at(&mut cut, after(1400)), at(&mut clean, after(1400)));
    let warnings = cut.warnings();
    assert_eq!(warnings[0], format!("it ends in the middle of the chunk at byte {last}"));
    assert!(warnings[1].starts_with("the recording has no end"), "{warnings:?}");
}

#[test]
fn files_that_are_no_recordings_are_refused() {
    let refused = |bytes: &[u8]| open(bytes.to_vec()).unwrap_err();
    assert!(refused(b"").starts_with("not a readable recording: "));
    assert!(refused(b"{\"version\": 5}").starts_with("not a readable recording: "));
    assert!(refused(b"DMDREC\n\x09").contains("version 9"));
    assert!(Recording::is_start(b"DMDREC\n\x09"));
    assert!(!Recording::is_start(b"{\"version\": 5}"));
}

#[test]
fn stacks_in_a_circle_end() {
    let mut nodes = NodeEncoder::new();
    nodes.push(StackNode { id: 1, parent: 2, pc: 0x50_0000 });
    nodes.push(StackNode { id: 2, parent: 1, pc: 0x50_1000 });
    let mut script = Script::new();
    script.begin(1, 1, 0x1000, 5, 1);
    script.begin(2, 1, 0x2000, 5, 3_000_000_000);
    let mut file = script.bytes();
    push_chunk(&mut file, ChunkKind::Nodes, nodes.payload());
    let mut recording = open(file).unwrap();
    assert_eq!(at(&mut recording, Moment::End), (2, 10));
    let stacks = recording.state_at(Moment::End).unwrap();
    assert!(stacks.stacks().all(|stack| stack.len() <= 512));
}

#[test]
fn limits_hold() {
    let script = random(9, 3000, 2);
    let options = DumpReadOptions::new().max_entries(100);
    let mut recording = Recording::from_file(Cursor::new(script.bytes()), &options).unwrap();
    let error = recording.state_at(Moment::End).unwrap_err().to_string();
    assert_eq!(error, "more than 100 blocks, traces, frames or words");
    let mut nodes = NodeEncoder::new();
    nodes.push(StackNode { id: 4_000_000_000, parent: 0, pc: 0x50_0000 });
    let mut file = script.bytes();
    push_chunk(&mut file, ChunkKind::Nodes, nodes.payload());
    assert!(open(file).unwrap_err().starts_with("more than 200000 "));
}
