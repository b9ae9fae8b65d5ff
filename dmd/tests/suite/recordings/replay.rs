//! A small reader of recordings. It keeps all events in memory, and replays them one after another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fs::File;
use std::path::Path;

use dmd_format::recording::*;
use serde_json::Value;

/// The frames as in dumps, innermost first; the requested bytes; the slop.
pub(crate) type Kind = (Vec<String>, u64, u64);

/// The contents of a recording.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) about: RecordedProcess,
    pub(crate) end: Option<RecordingEnd>,
    /// The reason why a part of the file cannot be read; `None` if all parts can be read.
    pub(crate) fault: Option<String>,
    pub(crate) names: BTreeMap<u32, String>,
    modules: Vec<RecordedModule>,
    nodes: BTreeMap<u32, StackNode>,
    live: Vec<LiveBlock>,
    /// The events of each thread.
    pub(crate) events: BTreeMap<u32, Vec<BlockEvent>>,
}

impl Recording {
    pub(crate) fn read(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut chunks = ChunkReader::open(std::io::BufReader::new(file)).unwrap();
        let mut recording = Self::default();
        let mut watermark = 0;
        while let Some(chunk) = chunks.next() {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    recording.fault = Some(error.to_string());
                    continue;
                }
            };
            assert!(recording.end.is_none(), "{}: a chunk after the end", path.display());
            match chunk.kind().unwrap() {
                ChunkKind::About => recording.about = RecordedProcess::decode(chunk.payload).unwrap(),
                ChunkKind::Modules => recording.modules = decode_modules(chunk.payload).unwrap(),
                ChunkKind::Nodes => {
                    let nodes = NodeDecoder::new(chunk.payload).map(Result::unwrap);
                    recording.nodes.extend(nodes.map(|node| (node.id, node)));
                }
                ChunkKind::Threads => {
                    for thread in decode_threads(chunk.payload).unwrap() {
                        recording.names.insert(thread.number, String::from_utf8(thread.name).unwrap());
                    }
                }
                ChunkKind::Live => recording.live.extend(LiveDecoder::new(chunk.payload).map(Result::unwrap)),
                ChunkKind::Events => recording.add_events(chunk.payload, watermark),
                ChunkKind::Watermark => watermark = Watermark::decode(chunk.payload).unwrap().tick,
                ChunkKind::End => recording.end = Some(RecordingEnd::decode(chunk.payload).unwrap()),
                _ => {}
            }
        }
        recording
    }

    fn add_events(&mut self, payload: &[u8], watermark: u64) {
        let decoder = EventDecoder::new(payload).unwrap();
        let events = self.events.entry(decoder.thread()).or_default();
        for event in decoder.map(Result::unwrap) {
            assert!(event.tick >= watermark && events.last().is_none_or(|last| last.tick <= event.tick));
            if let BlockAction::Begin(block) = event.what {
                assert!(
                    block.stack == 0 || self.nodes.contains_key(&block.stack),
                    "a node before its first use"
                );
            }
            events.push(event);
        }
    }

    pub(crate) fn number_of_events(&self) -> usize {
        self.events.values().map(Vec::len).sum()
    }

    /// Replays all events in the order of time.
    pub(crate) fn replay(&self) -> State {
        let mut state = State::default();
        for live in &self.live {
            state.begin(live.address, live.block);
        }
        state.at_start = state.blocks.len();
        let mut next: BTreeMap<u32, usize> = self.events.keys().map(|thread| (*thread, 0)).collect();
        let key = |thread: u32, at: usize| {
            let event = self.events[&thread].get(at)?;
            Some(Reverse((event.tick, matches!(event.what, BlockAction::Begin(_)), thread)))
        };
        let mut heap: BinaryHeap<_> = next.iter().filter_map(|(thread, at)| key(*thread, *at)).collect();
        // The changes of the sum of bytes. The end of a block counts as late as its thread may have counted it: right
        // before the thread's next event.
        let mut changes = Vec::with_capacity(self.number_of_events());
        let at_start = state.usable as i64;
        while let Some(Reverse((tick, _, thread))) = heap.pop() {
            let at = next.get_mut(&thread).unwrap();
            let before = state.usable as i64;
            state.apply(&self.events[&thread][*at]);
            *at += 1;
            let following = self.events[&thread].get(*at).map_or(u64::MAX, |event| event.tick);
            let change = state.usable as i64 - before;
            changes.push(if change > 0 { (tick, false, change) } else { (following, true, change) });
            heap.extend(key(thread, *at));
        }
        changes.sort_by_key(|&(latest, is_end, _)| (latest, is_end));
        let sums = changes.iter().scan(at_start, |sum, (.., change)| {
            *sum += change;
            Some(*sum)
        });
        state.peak_at_most = sums.fold(at_start, i64::max) as u64;
        state
    }

    /// The number of blocks of each kind. A stack contains at most the `most` innermost frames.
    pub(crate) fn kinds(&self, state: &State, most: usize) -> BTreeMap<Kind, u64> {
        let mut kinds = BTreeMap::new();
        for block in state.blocks.values() {
            let kind = (self.frames(block.stack, most), block.requested, block.slop);
            *kinds.entry(kind).or_default() += 1;
        }
        kinds
    }

    fn frames(&self, mut id: u32, most: usize) -> Vec<String> {
        let mut frames = Vec::new();
        let mut seen = BTreeSet::new();
        while let Some(node) = self.nodes.get(&id).filter(|node| node.pc >= FIRST_PC) {
            assert!(seen.insert(id), "a circle");
            if frames.len() == most {
                break;
            }
            let pc = node.pc - 1;
            let holds = |module: &&RecordedModule| (module.start..module.end).contains(&pc);
            let mut all = self.modules.iter().filter(holds);
            let module = all.find(|module| module.unloaded_since.is_none_or(|since| since <= id));
            frames.push(match module {
                Some(module) => {
                    let path = String::from_utf8_lossy(&module.path);
                    format!("#00: ???[{path} +0x{:x}]", pc.wrapping_sub(module.bias))
                }
                None => "#00: ??? (???:???)".to_owned(),
            });
            id = node.parent;
        }
        frames
    }
}

/// The heap at one moment.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) blocks: BTreeMap<u64, RecordedBlock>,
    pub(crate) bytes: u64,
    pub(crate) peak: u64,
    /// The peak if each thread counts each of its ends as late as possible. A thread takes the tick of an event before
    /// it counts the event, and counts the event before its next event.
    pub(crate) peak_at_most: u64,
    pub(crate) usable: u64,
    pub(crate) usable_peak: u64,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) moved: u64,
    pub(crate) at_start: usize,
    /// The number of blocks that began at the address of a live block, and of ends without a live block.
    pub(crate) faults: u64,
}

impl State {
    fn begin(&mut self, address: u64, block: RecordedBlock) {
        if let Some(lost) = self.blocks.insert(address, block) {
            self.faults += 1;
            self.subtract(lost);
        }
        self.bytes += block.requested;
        self.peak = self.peak.max(self.bytes);
        self.usable += block.requested + block.slop;
        self.usable_peak = self.usable_peak.max(self.usable);
    }

    fn end(&mut self, address: u64) {
        match self.blocks.remove(&address) {
            Some(block) => self.subtract(block),
            None => self.faults += 1,
        }
    }

    fn subtract(&mut self, block: RecordedBlock) {
        self.bytes -= block.requested;
        self.usable -= block.requested + block.slop;
    }

    fn apply(&mut self, event: &BlockEvent) {
        match event.what {
            BlockAction::Begin(block) => {
                self.begun += 1;
                self.begin(event.address, block);
            }
            BlockAction::Back(block) => {
                self.moved -= 1;
                self.begin(event.address, block);
            }
            BlockAction::End(_) => {
                self.ended += 1;
                self.end(event.address);
            }
            BlockAction::EndByMove(_) => {
                self.moved += 1;
                self.end(event.address);
            }
        }
    }
}

/// The number of blocks of each kind in a dump.
pub(crate) fn kinds_of_dump(dump: &Value) -> BTreeMap<Kind, u64> {
    let mut kinds = BTreeMap::new();
    for block in dump["blockList"].as_array().unwrap() {
        let stack = block.get("alloc");
        let frames = stack.map_or_else(Vec::new, |stack| crate::support::frames(dump, stack));
        let size = |name: &str| block.get(name).map_or(0, |size| size.as_u64().unwrap());
        *kinds.entry((frames, size("req"), size("slop"))).or_default() += crate::support::number_of(block);
    }
    kinds
}
