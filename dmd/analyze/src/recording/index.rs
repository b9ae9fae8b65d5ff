//! The first pass over a recording. It collects all facts, and the places of each thread's events.

use dmd_format::recording::{
    ChunkKind, ClockReading as ClockPair, EventDecoder, MalformedPayload, MappingAction, MappingDecoder,
    NodeDecoder, RecordedProcess, RecordingEnd, Watermark, decode_modules, decode_threads,
};
use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

use super::clock::TickClock;
use super::event::MappingStack;
use super::source::RecordingSource;
use super::tree::CallTree;
use crate::error::AnalyzeError;

/// The maximum number of warnings. Further warnings are only counted.
const MAX_WARNINGS: usize = 20;

/// The maximum length of a stored thread name, in bytes.
const MOST_NAME: usize = 256;

/// The length of a tick in picoseconds, if the file does not contain it.
const USUAL_TICK: u64 = 10_000;

/// Faults that affect only a part of a file.
#[derive(Debug, Default)]
pub(crate) struct FileWarnings {
    all: Vec<String>,
    more: usize,
}

impl FileWarnings {
    pub(crate) fn add(&mut self, warning: String) {
        if self.all.contains(&warning) {
        } else if self.all.len() < MAX_WARNINGS {
            self.all.push(warning);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn malformed(&mut self, offset: u64, error: MalformedPayload) {
        self.add(format!("the chunk at byte {offset} is malformed, its rest is left out: {error}"));
    }

    /// All warnings, one line each.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("and {} more faults", self.more));
        self.all.iter().cloned().chain(more)
    }
}

/// A thread, and the places of its events.
#[derive(Debug, Default)]
pub(crate) struct ThreadIndex {
    /// The number in the file. 0 means an unknown thread.
    pub(crate) number: u32,
    pub(crate) system_id: u32,
    pub(crate) name: String,
    /// For each chunk: a tick at or before its first event, and its place. Sorted by tick.
    pub(crate) chunks: Vec<(u64, u64)>,
}

/// Everything in a recording except its events.
#[derive(Debug)]
pub(crate) struct RecordingIndex {
    pub(crate) about: RecordedProcess,
    pub(crate) clock: TickClock,
    pub(crate) tree: CallTree,
    pub(crate) threads: Vec<ThreadIndex>,
    by_number: HashMap<u32, usize, DefaultHashBuilder>,
    /// The places of chunks with blocks that are older than the recording.
    pub(crate) older: Vec<u64>,
    /// The places of chunks with changes of mappings, in the order of the file. All threads write one log, so this is the
    /// order of the changes.
    pub(crate) mappings: Vec<u64>,
    /// The stacks that mapped memory.
    pub(crate) mapping_stacks: HashSet<MappingStack, DefaultHashBuilder>,
    pub(crate) end: Option<RecordingEnd>,
    watermark: u64,
    pub(crate) warnings: FileWarnings,
    entries: usize,
    max_entries: usize,
}

impl RecordingIndex {
    pub(crate) fn new(source: &mut RecordingSource, max_entries: usize) -> Result<Self, AnalyzeError> {
        let mut index = Self {
            about: RecordedProcess::new(),
            clock: TickClock::new(0.0),
            tree: CallTree::new(),
            threads: Vec::new(),
            by_number: HashMap::default(),
            older: Vec::new(),
            mappings: Vec::new(),
            mapping_stacks: HashSet::default(),
            end: None,
            watermark: 0,
            warnings: FileWarnings::default(),
            entries: 0,
            max_entries,
        };
        let mut pairs = Vec::new();
        let damaged = source.each(|kind, payload, offset| index.chunk(kind, payload, offset, &mut pairs))?;
        let length = source.length;
        for (from, to) in damaged {
            index.warnings.add(match to {
                to if to < length => format!("bytes {from} to {to} are damaged, and left out"),
                _ => format!("it ends in the middle of the chunk at byte {from}"),
            });
        }
        let start = index.about.tick;
        let picoseconds = match index.about.tick_picoseconds {
            0 => USUAL_TICK,
            known => known,
        };
        index.clock = TickClock::new(picoseconds as f64 / 1000.0);
        index.clock.add(0, 0);
        pairs.sort_unstable();
        pairs
            .iter()
            .for_each(|(tick, nanoseconds)| index.clock.add(tick.saturating_sub(start), *nanoseconds));
        for thread in &mut index.threads {
            thread.chunks.iter_mut().for_each(|chunk| chunk.0 = chunk.0.saturating_sub(start));
            thread.chunks.sort_by_key(|chunk| chunk.0);
        }
        index.tree.set_max_frames(index.about.max_frames);
        index.note_the_end();
        Ok(index)
    }

    fn note_the_end(&mut self) {
        match self.end {
            None => {
                let sure = self.clock.time(self.watermark.saturating_sub(self.about.tick)).as_secs_f64();
                self.warnings.add(format!(
                    "the recording has no end: the process was killed, or the disk was full; events after {sure:.2} s may \
                     be missing"
                ));
            }
            Some(RecordingEnd { dropped_blocks, lost_events, .. }) => {
                if dropped_blocks > 0 {
                    self.warnings.add(format!("the engine did not record {dropped_blocks} blocks"));
                }
                if lost_events > 0 {
                    self.warnings.add(format!("the engine lost {lost_events} events"));
                }
            }
        }
    }

    fn chunk(
        &mut self,
        kind: ChunkKind,
        payload: &[u8],
        offset: u64,
        pairs: &mut Vec<(u64, u64)>,
    ) -> Result<(), AnalyzeError> {
        self.entries += 1;
        let read = match kind {
            ChunkKind::About => RecordedProcess::decode(payload).map(|about| self.about = about),
            ChunkKind::Modules => decode_modules(payload).map(|modules| self.tree.set_modules(modules)),
            ChunkKind::Nodes => self.nodes(payload)?,
            ChunkKind::Threads => decode_threads(payload).map(|threads| {
                for thread in threads {
                    let at = self.thread(thread.number);
                    self.threads[at].system_id = thread.system_id;
                    let name = &thread.name[..thread.name.len().min(MOST_NAME)];
                    self.threads[at].name = String::from_utf8_lossy(name).into_owned();
                }
            }),
            ChunkKind::Events => EventDecoder::new(payload).map(|events| {
                let at = self.thread(events.thread());
                self.threads[at].chunks.push((events.tick(), offset));
            }),
            ChunkKind::Live => {
                self.older.push(offset);
                Ok(())
            }
            ChunkKind::Mappings => {
                self.mappings.push(offset);
                self.mapping_stacks(payload)
            }
            ChunkKind::Clock => {
                ClockPair::decode(payload).map(|pair| pairs.push((pair.tick, pair.nanoseconds)))
            }
            ChunkKind::Watermark => {
                Watermark::decode(payload).map(|mark| self.watermark = self.watermark.max(mark.tick))
            }
            ChunkKind::End => RecordingEnd::decode(payload).map(|end| self.end = Some(end)),
            _ => Ok(()),
        };
        if let Err(error) = read {
            self.warnings.malformed(offset, error);
        }
        let entries = self.entries + self.tree.len() + self.threads.len() + self.mapping_stacks.len();
        match entries > self.max_entries {
            true => Err(AnalyzeError::TooManyEntries(self.max_entries)),
            false => Ok(()),
        }
    }

    /// Adds calls up to the first malformed call. The inner error is the fault of the malformed call.
    fn nodes(&mut self, payload: &[u8]) -> Result<Result<(), MalformedPayload>, AnalyzeError> {
        for node in NodeDecoder::new(payload) {
            match node {
                Err(error) => return Ok(Err(error)),
                Ok(node) if node.id as usize > self.max_entries => {
                    return Err(AnalyzeError::TooManyEntries(self.max_entries));
                }
                Ok(node) => self.tree.add(node),
            }
        }
        Ok(Ok(()))
    }

    /// Adds the stacks of changes up to the first malformed change. A chunk has at most as many changes as bytes.
    fn mapping_stacks(&mut self, payload: &[u8]) -> Result<(), MalformedPayload> {
        for event in MappingDecoder::new(payload) {
            if let MappingAction::Map { stack, is_file } = event?.action {
                self.mapping_stacks.insert((stack, is_file));
            }
        }
        Ok(())
    }

    fn thread(&mut self, number: u32) -> usize {
        let next = self.threads.len();
        let at = *self.by_number.entry(number).or_insert(next);
        if at == next {
            self.threads.push(ThreadIndex { number, ..ThreadIndex::default() });
        }
        at
    }
}
