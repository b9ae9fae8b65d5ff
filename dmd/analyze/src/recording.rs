//! Recordings of a process: each allocation, reallocation and free, with time, thread and stack.
//!
//! `libdmd.so` and programs with the crate `dmd` write recordings. [`dmd_format::recording`] contains the format.
//!
//! ```no_run
//! use dmd_analyze::recording::{Moment, Recording};
//! use dmd_analyze::{Analysis, AnalyzeOptions, RecordKind};
//!
//! let mut recording = Recording::open("my-program.dmdrec")?;
//! let dump = recording.state_at("12.5s".parse::<Moment>().expect("a time"))?;
//! let analysis = Analysis::new(dump, &AnalyzeOptions::new());
//! println!("{} bytes", analysis.sums(RecordKind::Live).req);
//! # Ok::<(), dmd_analyze::AnalyzeError>(())
//! ```
//!
//! Each call replays the events from the file, so memory grows with the live blocks and the stacks, not with the length
//! of the recording. The state at one time is a [`Dump`], so every view of dumps can show it.
//!
//! # How the parts work together
//!
//! ```text
//! source, index     the chunks of the file; its facts, and where the events of each thread are
//! clock, moment     ticks and times
//! merge             the events of all threads in one order
//! replay, player    live blocks while events happen, up to a time
//! tree              stacks and modules, and a dump of some blocks
//! line, usage       observers of a replay: figures over time, by stack and by thread
//! slices            another observer: the blocks of stacks by the time slices in which they began and ended
//! changes           the changes of a replay in order of time
//! leaked, descent   the blocks that are alive at a time, and the bytes that the program freed before its end
//! growth            the live blocks of each stack at two times
//! mapped            the memory that the program mapped itself, over time and at one time
//! ```
//!
//! # Faults
//!
//! A file may be damaged, cut off, or made to harm its reader. The functions return an error only if they cannot read
//! any part of the file, or if the file exceeds a limit. All other faults become [warnings](Recording::warnings): the
//! reader leaves out damaged bytes and keeps all other bytes. A block whose allocation is missing is unknown. A block
//! whose free is missing stays alive until another block starts at its address.

mod changes;
mod clock;
mod descent;
mod event;
mod growth;
mod index;
mod leaked;
mod line;
mod mapped;
mod merge;
mod moment;
mod player;
mod replay;
mod slices;
mod source;
pub(crate) mod tree;
mod usage;

use core::fmt;
use core::time::Duration;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::Path;

use dmd_format::recording::MAGIC;
use memory_report::ReadError;
use rustc_hash::FxHashMap;

use crate::dump::{Dump, DumpPeak, DumpReadOptions, DumpStatistics, DumpTime};
use crate::error::AnalyzeError;
use changes::ChangeFilter;
use index::RecordingIndex;
use line::LineObserver;
use player::{RecordingPlayer, ReplayEnd, ReplayProgress};
use replay::{HeapReplay, HeapSums, ReplayObserver, ReplayedBlock};
use slices::{SliceBound, SliceObserver};
use source::RecordingSource;
use tree::EqualBlocks;
use usage::StackUsage;

pub use crate::dump::{HeapAt, RecordingOutline};
pub use changes::{BlockChange, BlockChanges};
pub use line::{LIFE_CLASSES, SIZE_CLASSES, UsageLine};
pub use moment::{Moment, MomentError};

pub(crate) use event::MappingStack;
pub(crate) use growth::LiveSums;
pub(crate) use leaked::{FreedBefore, LeakedStack, STEPS as LEAK_STEPS};
pub(crate) use line::{LIFE_LIMITS, LineGroups};
pub(crate) use mapped::{KeptMappings, MappedLine};
pub(crate) use slices::{ALIVE, SliceTable};
pub(crate) use usage::{ForeignFrees, StackUse, UsageFindings};

/// A recording of one process.
pub struct Recording {
    source: RecordingSource,
    index: RecordingIndex,
    max_entries: usize,
    progress: Option<ReplayProgress>,
    whole: Option<WholeReplay>,
}

/// The figures of a replay of the whole recording.
#[derive(Clone, Copy, Debug)]
struct WholeReplay {
    peak: HeapSums,
    end: HeapSums,
    older: HeapSums,
    counts: replay::EventCounts,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("source", &self.source)
            .field("about", &self.index.about)
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// Whether a file starts with the magic bytes of a recording. `false` if the file cannot be read.
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        let is_file = std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        let mut start = [0; MAGIC.len()];
        is_file
            && File::open(path)
                .is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && Self::is_start(&start))
    }

    /// Whether these bytes are the start of a recording, of any version.
    pub fn is_start(bytes: &[u8]) -> bool {
        bytes.len() >= MAGIC.len() && bytes[..MAGIC.len() - 1] == MAGIC[..MAGIC.len() - 1]
    }

    /// Opens a file with the default limits.
    ///
    /// # Errors
    ///
    /// Returns an error if `path` is not a regular file, if the file cannot be read or is not a recording, or if it
    /// exceeds a limit.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AnalyzeError> {
        Self::open_with(path, &DumpReadOptions::default())
    }

    /// Opens a file. [`DumpReadOptions::max_entries`] is the limit for the sum of chunks, calls on stacks, stacks that
    /// mapped memory, and threads, for the live blocks and mappings, and for the events in memory.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &DumpReadOptions) -> Result<Self, AnalyzeError> {
        Self::from_file(crate::dump::open(path.as_ref())?, options)
    }

    /// Reads a whole stream into memory. The maximum length of the stream is [`DumpReadOptions::max_bytes`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open_with`](Self::open_with), and an error if the stream is longer than the limit.
    pub fn from_stream(stream: impl Read, options: &DumpReadOptions) -> Result<Self, AnalyzeError> {
        let mut bytes = Vec::new();
        stream.take(options.max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        if bytes.len() as u64 > options.max_bytes {
            return Err(ReadError::TooLarge(options.max_bytes).into());
        }
        Self::from_file(Cursor::new(bytes), options)
    }

    /// Reads a file that is already open; see [`open_with`](Self::open_with).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open_with`](Self::open_with).
    pub fn from_file(
        file: impl Read + Seek + Send + 'static,
        options: &DumpReadOptions,
    ) -> Result<Self, AnalyzeError> {
        let mut source = RecordingSource::new(file)?;
        let max_entries = options.max_entries;
        let index = RecordingIndex::new(&mut source, max_entries)?;
        Ok(Self { source, index, max_entries, progress: None, whole: None })
    }

    /// The value of [`DumpReadOptions::max_entries`] for this recording.
    pub fn max_entries(&self) -> usize {
        self.max_entries
    }

    /// Sets a function that each replay calls from time to time, with the bytes read so far and the bytes of the file.
    pub fn set_progress(&mut self, progress: impl FnMut(u64, u64) + Send + 'static) {
        self.progress = Some(Box::new(progress));
    }

    /// The faults of the file, one line each, with the place if it is known. Later replays may find more faults.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.index.warnings.lines().collect();
        let unknown = self.whole.map_or(0, |whole| whole.counts.unknown_ends);
        if unknown > 0 {
            warnings.push(format!(
                "{unknown} blocks were freed or moved, but their allocation is not in the file"
            ));
        }
        warnings
    }

    /// The facts of the whole recording.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can no longer be read, or if the live blocks or the events in memory exceed
    /// [`DumpReadOptions::max_entries`].
    pub fn outline(&mut self) -> Result<RecordingOutline, AnalyzeError> {
        let WholeReplay { peak, end, older, counts } = self.whole()?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let length = self.length(&end);
        Ok(RecordingOutline {
            command: self.index.about.command.iter().map(text).collect(),
            process: self.index.about.process,
            statistics: statistics(&counts, length),
            peak: self.heap_at(&peak),
            end: HeapAt { time: length, ..self.heap_at(&end) },
            older: self.heap_at(&older),
            threads: self.index.threads.iter().filter(|thread| !thread.chunks.is_empty()).count(),
            is_complete: self.index.end.is_some(),
            began_late: self.index.about.began_late != 0,
        })
    }

    /// The time that a view should show by default: the peak if the heap has shrunk by more than a tenth since the
    /// peak, else the end.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`outline`](Self::outline).
    pub fn usual_moment(&mut self) -> Result<Moment, AnalyzeError> {
        Ok(if self.outline()?.has_shrunk() { Moment::Peak } else { Moment::End })
    }

    /// The live blocks at a time, as a dump of mode [`Live`](crate::Mode::Live). A time of less than a second after the
    /// end means the end.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`outline`](Self::outline), an error if the recording ends a second or more before
    /// the time, and an error if blocks, stacks and frames together exceed [`DumpReadOptions::max_entries`].
    pub fn state_at(&mut self, moment: Moment) -> Result<Dump, AnalyzeError> {
        let outline = self.outline()?;
        let time = reached(moment, &outline)?;
        let (at, until) = match moment {
            Moment::Peak => (DumpTime::Peak, self.until(moment)?),
            Moment::End => (DumpTime::End, ReplayEnd::End),
            Moment::After(time) => (DumpTime::Time(time), self.until(moment)?),
        };
        let replay = self.replay(until, &mut ())?;
        self.dump(&replay, outline, at, time, |_| true)
    }

    /// The blocks that the program allocated, moved or resized after the first time, and that are alive at the second
    /// time.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`state_at`](Self::state_at), and an error if the second time is before the first.
    pub fn between(&mut self, from: Moment, to: Moment) -> Result<Dump, AnalyzeError> {
        let (outline, first, second) = self.check_order(from, to)?;
        let after = self.last_before(from)?;
        let until = self.until(to)?;
        let replay = self.replay(until, &mut ())?;
        let is_new = |block: &ReplayedBlock| {
            block.thread != replay::OLDER && after.is_none_or(|after| block.since > after)
        };
        self.dump(&replay, outline, DumpTime::Window(first, second), second, is_new)
    }

    /// The begins and ends of blocks up to the time `to`, in order of time. Without `from`, all blocks count, and
    /// blocks that are older than the recording come first. With `from`, only blocks count that the program allocated,
    /// moved or resized after `from`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`between`](Self::between). The iterator returns an error if the file can no longer
    /// be read, or if the live blocks or the events in memory exceed [`DumpReadOptions::max_entries`].
    pub fn changes(&mut self, from: Option<Moment>, to: Moment) -> Result<BlockChanges<'_>, AnalyzeError> {
        let which = match from {
            None => {
                reached(to, &self.outline()?)?;
                ChangeFilter::All
            }
            Some(from) => {
                self.check_order(from, to)?;
                ChangeFilter::After(self.last_before(from)?)
            }
        };
        let until = self.until(to)?;
        BlockChanges::new(which, until, |next| self.player(next))
    }

    /// A dump with one empty block for each stack, in the order of `stacks`.
    ///
    /// # Errors
    ///
    /// Returns an error if blocks, stacks and frames together exceed [`DumpReadOptions::max_entries`].
    pub fn stacks(&self, stacks: impl IntoIterator<Item = u32>) -> Result<Dump, AnalyzeError> {
        let kind = |stack| (EqualBlocks { stack, requested: 0, slop: 0 }, 1);
        let mut dump = self.index.tree.dump(stacks.into_iter().map(kind), self.max_entries)?;
        dump.time = Some(Duration::from_nanos(self.index.about.wall_time).as_secs());
        Ok(dump)
    }

    /// The figures of a history, except its lines.
    pub(crate) fn findings(&mut self) -> Result<UsageFindings, AnalyzeError> {
        let mut findings = UsageFindings::default();
        self.play_whole(&mut findings)?;
        Ok(findings)
    }

    /// The lines of groups of blocks, each divided into `steps` steps.
    pub(crate) fn lines(&mut self, groups: LineGroups, steps: usize) -> Result<Vec<UsageLine>, AnalyzeError> {
        let WholeReplay { peak, end, .. } = self.whole()?;
        let mut lines = LineObserver::new(groups, steps, end.tick, &self.index.clock);
        let progress = self.progress.as_mut();
        let mut player =
            RecordingPlayer::new(&mut self.source, &mut self.index, progress, self.max_entries, &mut lines)?;
        player.play(ReplayEnd::Event(peak.event), &mut lines)?;
        lines.at_peak();
        player.play(ReplayEnd::End, &mut lines)?;
        Ok(lines.finish())
    }

    /// The allocations and the most live bytes of each stack.
    pub(crate) fn stack_uses(&mut self) -> Result<Vec<StackUse>, AnalyzeError> {
        let mut usage = StackUsage::default();
        self.play_whole(&mut usage)?;
        Ok(usage.stacks().to_vec())
    }

    /// The table of blocks by row and slice of time. `rows` contains the row of each stack. One of the bounds between
    /// slices is the time of the peak.
    pub(crate) fn sliced(
        &mut self,
        rows: Vec<u32>,
        slices: u64,
        max_cells: usize,
    ) -> Result<SliceTable, AnalyzeError> {
        let WholeReplay { peak, end, .. } = self.whole()?;
        let length = u64::try_from(self.length(&end).as_nanos()).unwrap_or(u64::MAX).max(1);
        let peak = self.index.clock.nanoseconds(peak.tick).min(length);
        let equal = (0..=slices).map(|n| (u128::from(length) * u128::from(n) / u128::from(slices)) as u64);
        let times: BTreeSet<u64> = equal.chain([peak]).collect();
        let clock = &self.index.clock;
        let bound = |nanoseconds: u64| SliceBound {
            nanoseconds,
            next: clock.tick(nanoseconds.saturating_add(1)),
            stays: nanoseconds == peak,
        };
        let mut table = SliceObserver::new(rows, times.into_iter().map(bound).collect(), max_cells);
        self.play_whole(&mut table)?;
        Ok(table.finish())
    }

    /// The threads in order of their indices: the number in the file, the system's number, and the name.
    pub(crate) fn threads(&self) -> impl ExactSizeIterator<Item = (u32, u32, &str)> {
        self.index.threads.iter().map(|thread| (thread.number, thread.system_id, &*thread.name))
    }

    /// The name of a thread. `None` if the thread does not exist, or has no name.
    pub fn thread_name(&self, thread: u32) -> Option<&str> {
        let thread = self.index.threads.get(thread as usize)?;
        (!thread.name.is_empty()).then_some(&*thread.name)
    }

    /// One more than the highest number of a stack.
    pub(crate) fn stacks_end(&self) -> usize {
        self.index.tree.end()
    }

    fn whole(&mut self) -> Result<WholeReplay, AnalyzeError> {
        if let Some(whole) = self.whole {
            return Ok(whole);
        }
        self.play_whole(&mut ())?;
        self.whole.ok_or(AnalyzeError::OneTime)
    }

    /// Replays the whole recording, and stores the results that do not depend on the observer.
    fn play_whole(&mut self, observer: &mut impl ReplayObserver) -> Result<HeapReplay, AnalyzeError> {
        let mut player = self.player(observer)?;
        let older = player.replay.now();
        player.play(ReplayEnd::End, observer)?;
        let replay = player.replay;
        let (peak, end, counts) = (replay.peak(), replay.now(), replay.counts());
        self.whole = Some(WholeReplay { peak, end, older, counts });
        Ok(replay)
    }

    fn replay(
        &mut self,
        until: ReplayEnd,
        observer: &mut impl ReplayObserver,
    ) -> Result<HeapReplay, AnalyzeError> {
        if until == ReplayEnd::End {
            return self.play_whole(observer);
        }
        let mut player = self.player(observer)?;
        player.play(until, observer)?;
        Ok(player.replay)
    }

    fn player(&mut self, observer: &mut impl ReplayObserver) -> Result<RecordingPlayer<'_>, AnalyzeError> {
        let (source, index, progress) = (&mut self.source, &mut self.index, self.progress.as_mut());
        RecordingPlayer::new(source, index, progress, self.max_entries, observer)
    }

    fn until(&mut self, moment: Moment) -> Result<ReplayEnd, AnalyzeError> {
        Ok(match moment {
            Moment::End => ReplayEnd::End,
            Moment::Peak => ReplayEnd::Event(self.whole()?.peak.event),
            Moment::After(time) => self.last_tick(time).map_or(ReplayEnd::Event(0), ReplayEnd::Tick),
        })
    }

    /// The last tick before a window that starts at this time. Events exactly at the time are before the window.
    fn last_before(&mut self, from: Moment) -> Result<Option<u64>, AnalyzeError> {
        Ok(match from {
            Moment::Peak => Some(self.whole()?.peak.tick),
            Moment::End => Some(u64::MAX),
            Moment::After(time) => self.last_tick(time),
        })
    }

    /// Returns the facts of the recording and both times. Fails if the second time is before the first.
    fn check_order(
        &mut self,
        from: Moment,
        to: Moment,
    ) -> Result<(RecordingOutline, Duration, Duration), AnalyzeError> {
        let outline = self.outline()?;
        let (first, second) = (reached(from, &outline)?, reached(to, &outline)?);
        if second < first {
            return Err(AnalyzeError::Backwards(first.as_secs_f64(), second.as_secs_f64()));
        }
        Ok((outline, first, second))
    }

    /// The last tick that is not after a time.
    fn last_tick(&self, time: Duration) -> Option<u64> {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.index.clock.tick(nanoseconds.saturating_add(1)).checked_sub(1)
    }

    /// The length of the recording. `end` is its last event.
    fn length(&self, end: &HeapSums) -> Duration {
        let known = self.index.end.map_or(0, |end| end.nanoseconds);
        self.index.clock.time(end.tick).max(Duration::from_nanos(known))
    }

    fn heap_at(&self, sums: &HeapSums) -> HeapAt {
        let HeapSums { bytes, requested, blocks, tick, .. } = *sums;
        HeapAt { time: self.index.clock.time(tick), bytes, requested, blocks }
    }

    /// A dump of some live blocks.
    fn dump(
        &self,
        replay: &HeapReplay,
        outline: RecordingOutline,
        shown: DumpTime,
        time: Duration,
        keeps: impl Fn(&ReplayedBlock) -> bool,
    ) -> Result<Dump, AnalyzeError> {
        let mut kinds: FxHashMap<EqualBlocks, u64> = FxHashMap::default();
        for block in replay.live().filter(|block| keeps(block)) {
            let ReplayedBlock { stack, requested, slop, .. } = *block;
            *kinds.entry(EqualBlocks { stack, requested, slop }).or_default() += 1;
        }
        let mut kinds: Vec<(EqualBlocks, u64)> = kinds.into_iter().collect();
        kinds.sort_unstable();
        let mut dump = self.index.tree.dump(kinds, self.max_entries)?;
        let about = &self.index.about;
        dump.variable =
            (!about.options.is_empty()).then(|| String::from_utf8_lossy(&about.options).into_owned());
        dump.time = Some((Duration::from_nanos(about.wall_time) + time).as_secs());
        dump.shown = shown;
        dump.process = Some(about.process);
        dump.peak = Some(DumpPeak {
            bytes: u64::try_from(outline.peak.bytes).unwrap_or(u64::MAX),
            blocks: outline.peak.blocks,
            seconds: outline.peak.time.as_secs_f64(),
            within: 0,
            is_usable: true,
            stacks: Vec::new(),
        });
        dump.statistics = Some(statistics(&replay.counts(), time));
        dump.outline = Some(outline);
        Ok(dump)
    }
}

/// The maximum by which a requested time may exceed the end. Views round the time of the end.
const ROUNDING: Duration = Duration::from_secs(1);

/// The time of a moment, if the recording reaches it.
fn reached(moment: Moment, outline: &RecordingOutline) -> Result<Duration, AnalyzeError> {
    let (time, end) = (moment.time(outline), outline.end.time);
    match time.saturating_sub(end) < ROUNDING {
        true => Ok(time),
        false => Err(AnalyzeError::AfterEnd(time.as_secs_f64(), end.as_secs_f64())),
    }
}

fn statistics(counts: &replay::EventCounts, time: Duration) -> DumpStatistics {
    let replay::EventCounts { allocations, frees, reallocations, temporary, .. } = *counts;
    DumpStatistics { seconds: time.as_secs_f64(), allocations, frees, reallocations, temporary }
}
