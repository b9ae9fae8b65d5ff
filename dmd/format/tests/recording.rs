//! Recordings of DMD: decoding returns the encoded values, and hostile bytes are errors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dmd_format::recording::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn blocks() -> impl Strategy<Value = RecordedBlock> {
    let sizes = prop_oneof![0..200_u64, 0..1_u64 << 20, 0..1_u64 << 62];
    let slops = prop_oneof![Just(None), (0..5000_u64).prop_map(Some), any::<u64>().prop_map(Some)];
    let stacks = prop_oneof![0..20_u32, 0..1_u32 << 25, any::<u32>()];
    (sizes, slops, stacks).prop_map(|(requested, slop, stack)| RecordedBlock {
        requested,
        slop: slop.unwrap_or(natural_slop(requested)),
        stack,
    })
}

fn events() -> impl Strategy<Value = Vec<BlockEvent>> {
    let what = prop_oneof![
        blocks().prop_map(BlockAction::Begin),
        blocks().prop_map(BlockAction::Back),
        proptest::option::of(blocks()).prop_map(BlockAction::End),
        proptest::option::of(blocks()).prop_map(BlockAction::EndByMove),
    ];
    let ticks = prop_oneof![0..40_u64, 0..100_000_u64, 0..1_u64 << 40];
    let addresses = prop_oneof![(0..1_u64 << 20).prop_map(|at| 0x7f00_0000_0000 + at * 16), any::<u64>()];
    vec((ticks, addresses, what), 0..300).prop_map(|parts| {
        let mut tick = 0;
        let event = |(ticks, address, what)| {
            tick += ticks;
            BlockEvent { tick, address, what }
        };
        parts.into_iter().map(event).collect()
    })
}

fn encoded(thread: u32, events: &[BlockEvent]) -> Vec<u8> {
    let mut payload = vec![0; EVENT_BUFFER];
    let mut encoder = Box::new(EventEncoder::new());
    encoder.start(&mut payload, thread, 0);
    for event in events {
        assert!(encoder.push(&mut payload, event));
    }
    assert_eq!(encoder.events(), events.len());
    payload.truncate(encoder.len());
    payload
}

fn decoded(payload: &[u8]) -> Result<Vec<BlockEvent>, MalformedPayload> {
    EventDecoder::new(payload)?.collect()
}

proptest! {
    #[test]
    fn events_are_decoded_as_they_were(thread: u32, events in events()) {
        let payload = encoded(thread, &events);
        prop_assert_eq!(EventDecoder::new(&payload).unwrap().thread(), thread);
        prop_assert_eq!(decoded(&payload).unwrap(), events);
    }

    #[test]
    fn nodes_are_decoded_as_they_were(nodes in vec((any::<u32>(), any::<u32>(), any::<u64>()), 0..50)) {
        let nodes: Vec<_> = nodes.into_iter().map(|(id, parent, pc)| StackNode { id, parent, pc }).collect();
        let mut encoder = NodeEncoder::new();
        nodes.iter().for_each(|node| encoder.push(*node));
        let decoded: Result<Vec<_>, _> = NodeDecoder::new(encoder.payload()).collect();
        prop_assert_eq!(decoded.unwrap(), nodes);
    }

    #[test]
    fn live_blocks_are_decoded_as_they_were(blocks in vec((any::<u64>(), blocks()), 0..50)) {
        let blocks: Vec<_> = blocks.into_iter().map(|(address, block)| LiveBlock { address, block }).collect();
        let mut encoder = LiveEncoder::new();
        blocks.iter().for_each(|block| encoder.push(block));
        let decoded: Result<Vec<_>, _> = LiveDecoder::new(encoder.payload()).collect();
        prop_assert_eq!(decoded.unwrap(), blocks);
    }

    #[test]
    fn changes_of_mappings_are_decoded_as_they_were(changes in vec((any::<u64>(), 0..1_u64 << 52, any::<u16>(), any::<Option<(u32, bool)>>()), 0..50)) {
        let change = |(tick, page, pages, map): (u64, u64, u16, Option<(u32, bool)>)| MappingEvent {
            tick,
            start: page << 12 & u64::MAX >> 1,
            bytes: u64::from(pages) << 12,
            action: map.map_or(MappingAction::Unmap, |(stack, is_file)| MappingAction::Map { stack, is_file }),
        };
        let changes: Vec<_> = changes.into_iter().map(change).collect();
        let mut encoder = MappingEncoder::new();
        encoder.push(&MappingEvent { tick: 5, start: 4096, bytes: 0, action: MappingAction::Unmap });
        encoder.clear();
        changes.iter().for_each(|change| encoder.push(change));
        let decoded: Result<Vec<_>, _> = MappingDecoder::new(encoder.payload()).collect();
        prop_assert_eq!(decoded.unwrap(), changes);
    }

    #[test]
    fn any_payload_is_decoded_or_refused(payload in vec(any::<u8>(), 0..400)) {
        let _ = decoded(&payload);
        let _ = NodeDecoder::new(&payload).count();
        let _ = LiveDecoder::new(&payload).count();
        let _ = MappingDecoder::new(&payload).count();
        let _ = decode_modules(&payload);
        let _ = decode_threads(&payload);
        let _ = RecordedProcess::decode(&payload);
        let _ = RecordingEnd::decode(&payload);
    }

    #[test]
    fn any_file_is_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let file = [&MAGIC[..], &bytes].concat();
        let mut chunks = ChunkReader::open(&file[..]).unwrap();
        while let Some(chunk) = chunks.next() {
            if let Ok(chunk) = chunk {
                let _ = decoded(chunk.payload);
            }
        }
    }
}

/// The documentation's rules for changes of mappings, byte by byte.
#[test]
fn changes_of_mappings_are_those_of_the_documentation() {
    let mut encoder = MappingEncoder::new();
    let map = MappingAction::Map { stack: 3, is_file: true };
    encoder.push(&MappingEvent { tick: 5, start: 2 << 12, bytes: 4 << 12, action: map });
    encoder.push(&MappingEvent { tick: 6, start: 1 << 12, bytes: 1 << 12, action: MappingAction::Unmap });
    let number = |number: u8| number << 1 | 1;
    let bytes = [2, 5 << 1, 2 << 1, 4, 3 << 1, 0, 1 << 1, 1, 1].map(number);
    assert_eq!(encoder.payload(), bytes);
    let refused = |bytes: &[u8]| {
        let bytes: Vec<u8> = bytes.iter().map(|byte| number(*byte)).collect();
        MappingDecoder::new(&bytes).last().unwrap().unwrap_err().reason
    };
    assert_eq!(refused(&[3, 0, 0, 1]), "a change of mappings has an unknown kind");
    assert_eq!(refused(&[0, 0, 1, 1]), "a mapping ends after the last address");
    assert_eq!(refused(&[1, 0, 2, 1, 1]), "the number of a stack is out of range");
    assert_eq!(refused(&[1, 0, 2, 1]), "the payload ends too early");
}

/// The documentation's rules for numbers, ticks, addresses and predictions, byte by byte.
#[test]
fn the_bytes_are_those_of_the_documentation() {
    let first = RecordedBlock { requested: 100, slop: 4, stack: 3 };
    let second = RecordedBlock { requested: 100, slop: 4, stack: 5 };
    let third = RecordedBlock { requested: 8, slop: 0, stack: 3 };
    let event = |tick, address, what| BlockEvent { tick, address, what };
    let events = [
        event(0, 0x40, BlockAction::Begin(first)),
        event(3, 0x40, BlockAction::End(None)),
        event(37, 0x20, BlockAction::Begin(second)),
        event(37, 0x28, BlockAction::Begin(third)),
        event(37, 0x20, BlockAction::EndByMove(None)),
        event(38, 0x20, BlockAction::Begin(RecordedBlock { slop: 16, ..third })),
        event(38, 0x20, BlockAction::Back(second)),
    ];
    let (one, many) = (|number: u8| number << 1 | 1, [0x22, 0x03]);
    let bytes: &[&[u8]] = &[
        &[one(9), one(0)],
        &[0b0000_0000, one(8), many[0], many[1], one(6)],
        &[0b0001_1001, one(0)],
        &[0b1111_1000, one(3), one(3), many[0], many[1], one(4)],
        &[3, 16 + 8, 0b0000_0000, one(0), one(17), one(0), one(3)],
        &[0b0000_0010, one(0)],
        // The stack 3 was followed by 5, and 5 by 3.
        &[0b0000_1000, one(0), one(16), one(0)],
        &[0b0000_0011, 0, one(0), many[0], many[1], one(4)],
    ];
    let payload = encoded(9, &events);
    assert_eq!(decoded(&payload).unwrap(), events);
    assert_eq!(payload[..bytes[..4].concat().len()], bytes[..4].concat());
}

#[test]
fn a_full_payload_takes_no_more() {
    let mut payload = vec![0; 200];
    let mut encoder = EventEncoder::new();
    encoder.start(&mut payload, 1, 0);
    let event = BlockEvent { tick: 1, address: 64, what: BlockAction::End(None) };
    let pushed = (0..200).take_while(|_| encoder.push(&mut payload, &event)).count();
    assert!(pushed > 50 && pushed == encoder.events());
    assert!(!encoder.has_room(&payload, 1));
    assert_eq!(decoded(&payload[..encoder.len()]).unwrap().len(), pushed);
}

#[test]
fn facts_are_decoded_as_they_were() {
    let mut about = RecordedProcess::new();
    (about.process, about.wall_time, about.tick) = (7, 1 << 60, u64::MAX);
    about.command = vec![b"program".to_vec(), b"--flag".to_vec()];
    about.mode = b"live".to_vec();
    assert_eq!(RecordedProcess::decode(&about.encode()).unwrap(), about);
    let mut end = RecordingEnd::new();
    (end.tick, end.frees, end.peak_within) = (1, 2, 3);
    assert_eq!(RecordingEnd::decode(&end.encode()).unwrap(), end);
    let thread = RecordedThread { number: 1, system_id: 99, name: b"main".to_vec() };
    let mut payload = Vec::new();
    encode_threads(&mut payload, [&thread, &thread]);
    assert_eq!(decode_threads(&payload).unwrap(), [thread.clone(), thread]);
    let library = RecordedModule {
        path: b"/lib/a.so".to_vec(),
        build_id: "00ff".to_owned(),
        start: 0x1000,
        end: 0x9000,
        bias: 0x1000,
        unloaded_since: Some(0),
    };
    let modules = [RecordedModule { unloaded_since: None, ..library.clone() }, library];
    assert_eq!(decode_modules(&encode_modules(&modules)).unwrap(), modules);
}

fn file() -> (Vec<u8>, Vec<usize>) {
    let mut file = MAGIC.to_vec();
    let mut ends = vec![];
    let long = vec![7; 10_000];
    for (kind, payload) in [
        (ChunkKind::About, RecordedProcess::new().encode()),
        (ChunkKind::Nodes, long),
        (ChunkKind::Events, encoded(1, &[])),
        (ChunkKind::End, RecordingEnd::new().encode()),
    ] {
        push_chunk(&mut file, kind, &payload);
        ends.push(file.len());
    }
    (file, ends)
}

#[test]
fn chunks_are_compressed_and_come_back() {
    let (file, ends) = file();
    assert!(ends[1] - ends[0] < 200, "10,000 equal bytes");
    let mut chunks = ChunkReader::open(&file[..]).unwrap();
    let mut kinds = vec![];
    while let Some(chunk) = chunks.next() {
        let chunk = chunk.unwrap();
        kinds.push(chunk.kind().unwrap());
        assert!(kinds.len() != 2 || chunk.payload == vec![7; 10_000]);
    }
    assert_eq!(kinds, [ChunkKind::About, ChunkKind::Nodes, ChunkKind::Events, ChunkKind::End]);
}

#[test]
fn the_prefix_of_a_file_is_readable_up_to_its_last_whole_chunk() {
    let (file, ends) = file();
    for length in MAGIC.len()..file.len() {
        let mut chunks = ChunkReader::open(&file[..length]).unwrap();
        let mut good = 0;
        let mut last = None;
        while let Some(chunk) = chunks.next() {
            match chunk {
                Ok(_) => good += 1,
                Err(error) => last = Some(error.to_string()),
            }
        }
        let whole = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(good, whole);
        let start = whole.checked_sub(1).map_or(MAGIC.len(), |at| ends[at]);
        let said = (start < length).then(|| format!("it ends in the middle of the chunk at byte {start}"));
        assert_eq!(last, said);
    }
}

#[test]
fn a_damaged_chunk_costs_only_itself() {
    let (file, ends) = file();
    for at in ends[0] + CHUNK_HEADER..ends[1] {
        let mut file = file.clone();
        file[at] ^= 1;
        let mut chunks = ChunkReader::open(&file[..]).unwrap();
        let mut good = 0;
        while let Some(chunk) = chunks.next() {
            match chunk {
                Ok(_) => good += 1,
                Err(error) => {
                    assert_eq!(error.to_string(), format!("the chunk at byte {} is damaged", ends[0]));
                }
            }
        }
        assert_eq!(good, 3);
    }
}

#[test]
fn other_files_are_refused() {
    let error = |bytes: &[u8]| ChunkReader::open(bytes).unwrap_err().to_string();
    assert_eq!(error(b""), "it does not start like a recording of DMD");
    assert_eq!(error(b"{\"version\": 5}"), "it does not start like a recording of DMD");
    assert_eq!(error(b"DMDREC\n\x09more"), "it has version 9 of the format, but only version 1 is supported");
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&[5, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let refused = ChunkReader::open(&file[..]).unwrap().next().unwrap().unwrap_err().to_string();
    assert_eq!(refused, "the chunk at byte 8 has more than 4194304 bytes");
}
