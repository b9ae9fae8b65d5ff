//! The history of a recording: everything that its stacks ever allocated, when, and for how long.

use std::io::Write;
use std::time::Duration;

use dmd_analyze::program::FoldRules;
use dmd_analyze::recording::{BlockChange, BlockChanges, Moment, Recording};
use dmd_analyze::{AnalyzeError, Dump};
use rustc_hash::FxHashMap;

use super::stack_ids::DumpStackIds;
use super::stack_types::StackTypes;
use super::{ProfileError, ProfileOptions};
use crate::stack_profile::amount;
use crate::{
    ExportError, ProfileEvent, ProfileFormat, ProfileStackId, ProfileValue, SampleLabels, StackProfile,
    StackProfileBuilder, dhat, firefox_profiler, heaptrack, pprof,
};

/// A part of a recording that ends at a time. It contains all blocks, or the blocks that the program allocated after a
/// start time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordingWindow {
    /// The start: only blocks that the program allocated, moved or resized after this time count. `None`: all blocks
    /// count.
    pub from: Option<Moment>,
    /// The end of the part.
    pub to: Moment,
}

/// The history of a recording.
///
/// A block that is older than the recording counts as allocated at the start of the recording. If the program moves or
/// resizes a block, the block ends and another begins. Bytes are usable bytes or, with [`ProfileOptions::requested`],
/// requested bytes.
#[derive(Debug)]
pub struct RecordingHistory {
    window: RecordingWindow,
    options: ProfileOptions,
    /// The numbers of all stacks, sorted. The dump contains one block for each stack.
    numbers: Vec<u32>,
    dump: Dump,
    types: StackTypes,
    kinds: Vec<(BlockKind, BlockCounts)>,
    threads: Vec<Option<String>>,
    peak: HeapPeak,
    facts: WindowFacts,
}

/// Equal blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct BlockKind {
    stack: u32,
    thread: Option<u32>,
    size: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct BlockCounts {
    allocated: u64,
    live: u64,
}

/// The time at which the most requested bytes are live.
#[derive(Clone, Copy, Debug, Default)]
struct HeapPeak {
    /// The number of changes up to the peak.
    changes: u64,
    time: Duration,
    bytes: i128,
}

#[derive(Debug)]
struct WindowFacts {
    pid: Option<u32>,
    /// The time of the window's end since 1970. `duration` is the same time since the start of the recording.
    time: Option<Duration>,
    duration: Duration,
}

impl RecordingHistory {
    /// Reads a part of a recording. `symbolize` looks up the symbols of a dump.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can no longer be read, if the window ends before it starts, or if a limit of
    /// [`DumpReadOptions`] is exceeded.
    ///
    /// [`DumpReadOptions`]: dmd_analyze::DumpReadOptions
    pub fn new(
        recording: &mut Recording,
        window: RecordingWindow,
        options: &ProfileOptions,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<Self, AnalyzeError> {
        let outline = recording.outline()?;
        let duration = window.to.time(&outline).min(outline.end.time);
        let mut kinds: FxHashMap<BlockKind, BlockCounts> = FxHashMap::default();
        let mut peak = HeapPeak::default();
        let mut live = 0;
        let most = recording.max_entries();
        for (index, change) in (1..).zip(recording.changes(window.from, window.to)?) {
            let change = change?;
            let BlockChange { stack, thread, requested, .. } = change;
            if kinds.len() > most {
                return Err(AnalyzeError::TooManyEntries(most));
            }
            let counts = kinds.entry(BlockKind { stack, thread, size: size(&change, options) }).or_default();
            if change.is_end {
                counts.live -= 1;
                live -= i128::from(requested);
            } else {
                counts.allocated += u64::from(is_new(&change));
                counts.live += 1;
                live += i128::from(requested);
            }
            if live > peak.bytes {
                peak = HeapPeak { changes: index, time: change.time, bytes: live };
            }
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_unstable_by_key(|(kind, _)| *kind);
        let mut numbers: Vec<u32> = kinds.iter().map(|(kind, _)| kind.stack).collect();
        numbers.dedup();
        let most = kinds.iter().filter_map(|(kind, _)| kind.thread).max();
        let name = |thread| recording.thread_name(thread).map(str::to_owned);
        let threads = (0..most.map_or(0, |most| most + 1)).map(name).collect();
        let mut dump = recording.stacks(numbers.iter().copied())?;
        symbolize(&mut dump);
        let types = if options.types { StackTypes::new(&dump) } else { StackTypes::default() };
        if !options.all_frames {
            dump.fold(&FoldRules::new());
        }
        let time = dump.time().map(|start| Duration::from_secs(start) + duration);
        let facts = WindowFacts { pid: u32::try_from(outline.process).ok(), time, duration };
        Ok(Self { window, options: options.clone(), numbers, dump, types, kinds, threads, peak, facts })
    }

    /// The blocks that the program allocated in the window, and the blocks among them that are alive at its end, by
    /// stack, size, type and thread.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes of equal blocks exceed 63 bits.
    pub fn stacks(&self) -> Result<StackProfile, ExportError> {
        let values = [
            ProfileValue::AllocatedBlocks,
            ProfileValue::AllocatedBytes,
            ProfileValue::LiveBlocks,
            ProfileValue::LiveBytes,
        ];
        self.stacks_with(&values).map(|(stacks, _)| stacks)
    }

    /// Makes [`stacks`](Self::stacks) with some of the values. Also returns the ids of the stacks in the order of their
    /// numbers.
    fn stacks_with(
        &self,
        values: &[ProfileValue],
    ) -> Result<(StackProfile, Vec<ProfileStackId>), ExportError> {
        let mut builder = self.builder(values);
        let ids = self.stack_ids(true, &mut builder);
        let of_dump: Vec<Option<usize>> = self.dump.blocks().map(|block| block.stack()).collect();
        let mut amounts = Vec::with_capacity(values.len());
        for (kind, counts) in &self.kinds {
            let Some(index) = self.index(kind.stack) else { continue };
            let type_name = of_dump[index].and_then(|stack| self.types.get(stack));
            let thread = kind.thread.and_then(|thread| self.threads[thread as usize].as_deref());
            let labels = builder.labels(&SampleLabels {
                type_name: type_name.map(|number| self.types.names[number as usize].as_str()),
                thread,
                ..SampleLabels::default()
            });
            amounts.clear();
            for value in values {
                let blocks = match value {
                    ProfileValue::AllocatedBlocks | ProfileValue::AllocatedBytes => counts.allocated,
                    _ => counts.live,
                };
                let each = if value.unit() == "bytes" { kind.size } else { 1 };
                amounts.push(amount(*value, i128::from(blocks) * i128::from(each))?);
            }
            builder.sample(ids[index], labels, Some(kind.size), &amounts);
        }
        let (stacks, new) = builder.finish_with_stacks()?;
        let ids = ids.into_iter().map(|id| new.stack(id)).collect();
        Ok((stacks, ids))
    }

    /// Writes the history. The file depends on the format:
    /// - heaptrack: each allocation and each free.
    /// - DHAT: for each stack, the allocated blocks, the blocks at the peak, its maximum, and the life times.
    /// - pprof: the allocated blocks and the live blocks.
    /// - Firefox Profiler: the live bytes over time.
    /// - Other formats: the blocks that are alive at the end of the window.
    ///
    /// `recording` must be the recording from which the history was read.
    ///
    /// # Errors
    ///
    /// Returns an error if `out` fails, if the format cannot hold an amount, or if the recording can no longer be read.
    pub fn write(
        &self,
        recording: &mut Recording,
        format: ProfileFormat,
        options: &pprof::PprofOptions,
        out: &mut dyn Write,
    ) -> Result<(), ProfileError> {
        let live = [ProfileValue::LiveBlocks, ProfileValue::LiveBytes];
        match format {
            ProfileFormat::Pprof => pprof::write(&self.stacks()?, options, out)?,
            ProfileFormat::Heaptrack => {
                let (stacks, ids) = self.stacks_with(&live)?;
                self.with_events(recording, &ids, |events| heaptrack::write_history(&stacks, events, out))?;
            }
            ProfileFormat::FirefoxProfiler => {
                let (stacks, ids) = self.stacks_with(&live)?;
                self.with_events(recording, &ids, |events| firefox_profiler::write(&stacks, events, out))?;
            }
            ProfileFormat::Dhat => dhat::write(&self.lives(recording)?, out)?,
            ProfileFormat::Speedscope | ProfileFormat::Folded => {
                format.write(&self.stacks_with(&live)?.0, options, out)?;
            }
        }
        Ok(())
    }

    fn builder(&self, values: &[ProfileValue]) -> StackProfileBuilder {
        let mut builder = StackProfileBuilder::new(values);
        let WindowFacts { pid, time, duration } = self.facts;
        let facts = builder.facts();
        facts.comment = match self.window.from {
            None => format!("blocks until {}, recorded by DMD", self.window.to),
            Some(from) => format!("blocks allocated from {from} to {}, recorded by DMD", self.window.to),
        };
        (facts.pid, facts.time, facts.duration) = (pid, time, Some(duration));
        facts.peak = Some(self.peak.time);
        if let Some(module) = self.dump.modules().first() {
            facts.program.clone_from(&module.path);
        }
        builder
    }

    /// The ids of the stacks in the order of their numbers.
    fn stack_ids(&self, addresses: bool, builder: &mut StackProfileBuilder) -> Vec<ProfileStackId> {
        let ids = DumpStackIds::new(&self.dump, addresses, builder);
        self.dump.blocks().map(|block| ids.get(block.stack())).collect()
    }

    /// The index of a stack by its number. `None` for a stack that was added because the file changed while it was
    /// read.
    fn index(&self, number: u32) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    fn with_events(
        &self,
        recording: &mut Recording,
        ids: &[ProfileStackId],
        write: impl FnOnce(&mut dyn Iterator<Item = ProfileEvent>) -> Result<(), ExportError>,
    ) -> Result<(), ProfileError> {
        let RecordingWindow { from, to } = self.window;
        let mut changes = ChangesUntilError { changes: recording.changes(from, to)?, error: None };
        write(&mut changes.by_ref().filter_map(|change| {
            let size = size(&change, &self.options);
            Some(ProfileEvent::new(change.time, ids[self.index(change.stack)?], size, change.is_end))
        }))?;
        changes.error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// For each stack: its allocated blocks, its blocks at the heap's peak, the stack's own maximum, its live blocks,
    /// and its life times. Stacks that look equal to a reader are merged, so that the maximum of a stack is exact.
    fn lives(&self, recording: &mut Recording) -> Result<StackProfile, ProfileError> {
        // Equal stacks get equal ids only when the builder finishes, so the sums use the new ids.
        let mut builder = self.builder(&[]);
        let ids = self.stack_ids(false, &mut builder);
        let (_, new) = builder.finish_with_stacks()?;
        let mut sorted: Vec<ProfileStackId> = ids.iter().map(|id| new.stack(*id)).collect();
        let places: Vec<ProfileStackId> = sorted.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let place = |id: &ProfileStackId| sorted.partition_point(|known| known < id);
        let places: Vec<usize> = places.iter().map(place).collect();
        let mut lives = vec![StackLife::default(); sorted.len()];
        let RecordingWindow { from, to } = self.window;
        for (index, change) in (1..).zip(recording.changes(from, to)?) {
            let change = change?;
            let size = size(&change, &self.options);
            if let Some(stack) = self.index(change.stack) {
                lives[places[stack]].take(&change, size);
            }
            if index == self.peak.changes {
                lives
                    .iter_mut()
                    .for_each(|life| (life.peak_bytes, life.peak_blocks) = (life.bytes, life.blocks));
            }
        }
        // A live block has lived until the end of the window.
        let end = self.facts.duration.as_nanos() as i128;
        let mut builder = self.builder(&VALUES);
        let own = self.stack_ids(false, &mut builder);
        let labels = builder.labels(&SampleLabels::default());
        let mut written = vec![false; lives.len()];
        for (id, place) in own.into_iter().zip(places) {
            if core::mem::replace(&mut written[place], true) {
                continue;
            }
            let amounts = lives[place].amounts(end);
            let mut all = Vec::with_capacity(VALUES.len());
            for (value, exact) in VALUES.into_iter().zip(amounts) {
                all.push(amount(value, exact)?);
            }
            builder.sample(id, labels, None, &all);
        }
        Ok(builder.finish()?)
    }
}

/// Whether a started block is new. If the allocator failed to move a block, the same block starts again.
fn is_new(change: &BlockChange) -> bool {
    change.since == change.time
}

/// The bytes of a block, with its slop unless the options request requested bytes.
fn size(change: &BlockChange, options: &ProfileOptions) -> u64 {
    let slop = if options.requested { 0 } else { change.slop };
    change.requested.saturating_add(slop)
}

/// Iterates over the changes up to the first error, and stores the error.
struct ChangesUntilError<'r> {
    changes: BlockChanges<'r>,
    error: Option<AnalyzeError>,
}

impl Iterator for ChangesUntilError<'_> {
    type Item = BlockChange;

    fn next(&mut self) -> Option<BlockChange> {
        match self.changes.next()? {
            Ok(change) => Some(change),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }
}

/// The values of a [`StackLife`], in order.
const VALUES: [ProfileValue; 9] = [
    ProfileValue::AllocatedBlocks,
    ProfileValue::AllocatedBytes,
    ProfileValue::LiveBlocks,
    ProfileValue::LiveBytes,
    ProfileValue::PeakBlocks,
    ProfileValue::PeakBytes,
    ProfileValue::OwnPeakBlocks,
    ProfileValue::OwnPeakBytes,
    ProfileValue::Lifetimes,
];

/// The blocks of a stack.
#[derive(Clone, Copy, Debug, Default)]
struct StackLife {
    allocated_blocks: i128,
    allocated_bytes: i128,
    blocks: i128,
    bytes: i128,
    peak_blocks: i128,
    peak_bytes: i128,
    most_blocks: i128,
    most_bytes: i128,
    /// The sum of the end times of freed blocks minus the sum of the start times of all blocks, in nanoseconds.
    lived: i128,
}

impl StackLife {
    fn take(&mut self, change: &BlockChange, size: u64) {
        let sign = if change.is_end { -1 } else { 1 };
        self.blocks += sign;
        self.bytes += sign * i128::from(size);
        self.lived -= sign * change.time.as_nanos() as i128;
        if !change.is_end {
            let is_new = i128::from(is_new(change));
            self.allocated_blocks += is_new;
            self.allocated_bytes += is_new * i128::from(size);
            if self.bytes > self.most_bytes {
                (self.most_blocks, self.most_bytes) = (self.blocks, self.bytes);
            }
        }
    }

    /// The amounts of [`VALUES`]. `end` is the end of the window, in nanoseconds since the start of the recording.
    fn amounts(&self, end: i128) -> [i128; 9] {
        let lived = self.lived + self.blocks * end;
        [
            self.allocated_blocks,
            self.allocated_bytes,
            self.blocks,
            self.bytes,
            self.peak_blocks,
            self.peak_bytes,
            self.most_blocks,
            self.most_bytes,
            lived.max(0) / 1000,
        ]
    }
}
