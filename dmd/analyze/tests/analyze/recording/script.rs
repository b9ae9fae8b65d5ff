//! Makes recordings for tests.

use std::collections::BTreeMap;
use std::io::Cursor;

use dmd_analyze::DumpReadOptions;
use dmd_analyze::recording::Recording;
use dmd_format::recording::{
    BlockAction, BlockEvent, ChunkKind, ClockReading, EVENT_BUFFER, EventEncoder, LiveBlock, LiveEncoder,
    MAGIC, MappingAction, MappingEncoder, MappingEvent, NodeEncoder, RecordedBlock, RecordedModule,
    RecordedProcess, RecordedThread, RecordingEnd, StackNode, Watermark, encode_modules, encode_threads,
    push_chunk,
};

/// The ticks of a microsecond.
pub(crate) const MICROSECOND: u64 = 100;

/// The tick at the start.
const START: u64 = 1_000_000;

/// The events, at microseconds after the start.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) events: BTreeMap<u32, Vec<BlockEvent>>,
    pub(crate) older: Vec<LiveBlock>,
    /// The stacks, each with the offsets of its calls in the program, outermost first.
    pub(crate) stacks: Vec<Vec<u64>>,
    pub(crate) modules: Vec<RecordedModule>,
    pub(crate) end: Option<RecordingEnd>,
    pub(crate) command: Vec<Vec<u8>>,
    /// Changes of mappings, in any order.
    pub(crate) mappings: Vec<MappingEvent>,
    /// The maximum number of events in a chunk.
    pub(crate) chunk: usize,
}

pub(crate) const BASE: u64 = 0x5500_0000_0000;

impl Script {
    pub(crate) fn new() -> Self {
        let program = RecordedModule {
            path: b"/app/server".to_vec(),
            build_id: "00ff".to_owned(),
            start: BASE,
            end: BASE + 0x10_0000,
            bias: BASE,
            unloaded_since: None,
        };
        let mut end = RecordingEnd::new();
        end.tick = START;
        Self {
            events: BTreeMap::new(),
            older: Vec::new(),
            stacks: Vec::new(),
            modules: vec![program],
            end: Some(end),
            command: vec![b"server".to_vec(), b"--port=80".to_vec()],
            mappings: Vec::new(),
            chunk: 1000,
        }
    }

    /// One block stays, one grows and ends, and one lives for a moment. The peak is at 40 microseconds, the end at 70.
    pub(crate) fn small() -> Self {
        let mut script = Self::new();
        let main = script.stack(&[0x10]);
        let grow = script.stack(&[0x10, 0x20]);
        script.begin(10, 1, 0x1000, 100, main);
        script.begin(20, 1, 0x2000, 1000, grow);
        script.resize(30, 1, 0x2000, 0x3000, 2000, grow);
        script.begin(40, 2, 0x4000, 50, main);
        script.end(50, 1, 0x4000);
        script.end(60, 2, 0x3000);
        script.begin(70, 2, 0x3000, 7, main);
        script
    }

    /// Adds a stack, and returns its number for events.
    pub(crate) fn stack(&mut self, calls: &[u64]) -> u32 {
        self.stacks.push(calls.to_vec());
        self.stacks.iter().map(Vec::len).sum::<usize>() as u32
    }

    pub(crate) fn push(&mut self, at: u64, thread: u32, address: u64, what: BlockAction) {
        let tick = START + at * MICROSECOND;
        self.events.entry(thread).or_default().push(BlockEvent { tick, address, what });
    }

    pub(crate) fn begin(&mut self, at: u64, thread: u32, address: u64, requested: u64, stack: u32) {
        self.push(at, thread, address, BlockAction::Begin(RecordedBlock { requested, slop: 0, stack }));
    }

    /// Changes the mapping of some pages. `map` has the stack, and whether it is a file's.
    pub(crate) fn map(&mut self, at: u64, page: u64, pages: u64, map: Option<(u32, bool)>) {
        let (tick, start, bytes) = (START + at * MICROSECOND, page << 12, pages << 12);
        let action =
            map.map_or(MappingAction::Unmap, |(stack, is_file)| MappingAction::Map { stack, is_file });
        self.mappings.push(MappingEvent { tick, start, bytes, action });
    }

    pub(crate) fn end(&mut self, at: u64, thread: u32, address: u64) {
        self.push(at, thread, address, BlockAction::End(None));
    }

    /// Moves a block.
    pub(crate) fn resize(&mut self, at: u64, thread: u32, from: u64, to: u64, requested: u64, stack: u32) {
        self.push(at, thread, from, BlockAction::EndByMove(None));
        self.begin(at, thread, to, requested, stack);
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        let mut about = RecordedProcess::new();
        (about.process, about.tick, about.tick_picoseconds, about.wall_time) =
            (77, START, 10_000, 1_700_000_000 << 30);
        about.command.clone_from(&self.command);
        push_chunk(&mut file, ChunkKind::About, &about.encode());
        push_chunk(&mut file, ChunkKind::Modules, &encode_modules(&self.modules));
        let mut nodes = NodeEncoder::new();
        let mut id = 0;
        for stack in &self.stacks {
            let mut parent = 0;
            for offset in stack {
                id += 1;
                nodes.push(StackNode { id, parent, pc: BASE + offset + 1 });
                parent = id;
            }
        }
        push_chunk(&mut file, ChunkKind::Nodes, nodes.payload());
        let mut live = LiveEncoder::new();
        self.older.iter().for_each(|block| live.push(block));
        push_chunk(&mut file, ChunkKind::Live, live.payload());
        let names: Vec<RecordedThread> = self
            .events
            .keys()
            .map(|number| RecordedThread {
                number: *number,
                system_id: 100 + number,
                name: format!("worker-{number}").into_bytes(),
            })
            .collect();
        let mut threads = Vec::new();
        encode_threads(&mut threads, &names);
        push_chunk(&mut file, ChunkKind::Threads, &threads);
        // The chunks of all threads in the order in which an engine writes them.
        let mut chunks: Vec<(u64, u32, Vec<u8>)> = Vec::new();
        for (thread, events) in &self.events {
            for events in events.chunks(self.chunk) {
                let mut payload = vec![0; EVENT_BUFFER];
                let mut encoder = EventEncoder::new();
                encoder.start(&mut payload, *thread, events[0].tick);
                assert!(events.iter().all(|event| encoder.push(&mut payload, event)));
                payload.truncate(encoder.len());
                chunks.push((events[0].tick, *thread, payload));
            }
        }
        chunks.sort_by_key(|(tick, thread, _)| (*tick, *thread));
        let last = chunks.last().map_or(START, |(tick, ..)| *tick);
        for (_, _, payload) in &chunks {
            push_chunk(&mut file, ChunkKind::Events, payload);
        }
        for events in self.mappings.chunks(self.chunk) {
            let mut encoder = MappingEncoder::new();
            events.iter().for_each(|event| encoder.push(event));
            push_chunk(&mut file, ChunkKind::Mappings, encoder.payload());
        }
        let mut clock = ClockReading::new();
        (clock.tick, clock.nanoseconds) = (last, (last - START) * 10);
        push_chunk(&mut file, ChunkKind::Clock, &clock.encode());
        let mut mark = Watermark::new();
        mark.tick = last;
        push_chunk(&mut file, ChunkKind::Watermark, &mark.encode());
        if let Some(end) = &self.end {
            push_chunk(&mut file, ChunkKind::End, &end.encode());
        }
        file
    }

    pub(crate) fn recording(&self) -> Recording {
        Recording::from_file(Cursor::new(self.bytes()), &DumpReadOptions::new()).unwrap()
    }
}

/// A generator of pseudo-random numbers with a fixed seed (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A script of random events. Its threads free each other's blocks.
pub(crate) fn random(seed: u64, events: usize, threads: u32) -> Script {
    let mut random = Random(seed);
    let mut script = Script::new();
    let stacks: Vec<u32> = (0..8).map(|n| script.stack(&[0x10, 0x20 + n, 0x40 * n])).collect();
    let mut live: Vec<u64> = Vec::new();
    let mut next = 0x1000;
    for at in 0..events as u64 {
        let thread = 1 + random.below(threads as usize) as u32;
        let stack = stacks[random.below(stacks.len())];
        let size = 1 + random.below(5000) as u64;
        match random.below(8) {
            0..3 if !live.is_empty() => {
                let address = live.swap_remove(random.below(live.len()));
                script.end(at, thread, address);
            }
            3 if !live.is_empty() => {
                let place = random.below(live.len());
                let (from, to) = (live[place], if size.is_multiple_of(2) { live[place] } else { next });
                next += 0x10;
                live[place] = to;
                script.resize(at, thread, from, to, size, stack);
            }
            _ => {
                // Addresses are reused.
                let address = next % 0x8000;
                next += 0x30;
                if !live.contains(&address) {
                    live.push(address);
                    script.begin(at, thread, address, size, stack);
                }
            }
        }
    }
    script
}
