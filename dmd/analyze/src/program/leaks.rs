//! Blocks that are never freed: the stacks that allocated them, the number of allocations, and the kinds of blocks that
//! a library allocates once.

mod json;
mod mapped;
mod one_time;
mod text;

use core::fmt;
use core::time::Duration;

use dmd_format::Mode;
use rustc_hash::FxHashMap;

use super::mapping_caller::allocators;
use crate::dump::{Dump, RecordingOutline};
use crate::error::AnalyzeError;
use crate::recording::{FreedBefore, LEAK_STEPS, LeakedStack, Moment, Recording};
use crate::records::{Analysis, AnalyzeOptions, CutStackId, NO_STACK};

pub use json::LeaksJson;
use mapped::MappingLeak;
pub use one_time::OneTime;
pub use text::LeaksText;

/// The blocks of a stack count as allocated again and again if the program allocated them in at least this many
/// twentieths of the time.
const AGAIN: usize = 3;

/// The program freed memory at its exit if it freed at least a tenth of the peak (`1 / EXIT_PART`) in the last quarter
/// of the time (`1 / EXIT_TIME`).
const EXIT_PART: u128 = 10;
const EXIT_TIME: u32 = 4;

type IgnoreRule = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Options that decide which blocks count as leaks.
#[derive(Default)]
pub struct LeakOptions {
    known: bool,
    at: Option<Moment>,
    ignored: Vec<IgnoreRule>,
}

impl fmt::Debug for LeakOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakOptions")
            .field("known", &self.known)
            .field("at", &self.at)
            .field("ignored", &self.ignored.len())
            .finish()
    }
}

impl LeakOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether blocks that libraries allocate once count as leaks. Default: no.
    #[must_use]
    pub fn known(mut self, known: bool) -> Self {
        self.known = known;
        self
    }

    /// Sets the time of a recording at which the leaked blocks are alive. Set a time before the end if the program
    /// frees all memory before it ends. Default: the end.
    #[must_use]
    pub fn at(mut self, at: Moment) -> Self {
        self.at = Some(at);
        self
    }

    /// Lists the blocks of stacks with an ignored frame apart from the leaks. `rule` returns true for the text of an
    /// ignored frame, such as `app::f (/home/me/app/src/f.rs:7)`.
    #[must_use]
    pub fn ignore(mut self, rule: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.ignored.push(Box::new(rule));
        self
    }
}

/// The way in which the blocks of a stack accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StackGrowth {
    /// The program allocated the blocks in at least [`AGAIN`] parts of the time, so their number grows.
    Again,
    /// The program allocated the blocks in fewer parts of the time.
    Once,
    /// Unknown: a dump does not contain the times of allocations.
    Unknown,
}

/// The reason why live blocks do not count as leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NoLeakReason {
    OneTime(OneTime),
    Ignored,
    Older,
}

/// The blocks of one stack.
#[derive(Debug)]
struct LeakGroup {
    stack: CutStackId,
    blocks: u64,
    /// Usable bytes.
    bytes: u128,
    requested: u128,
    /// The number of allocations of the stack, freed blocks included; `None` for a dump.
    allocations: Option<u64>,
    times: Option<(Duration, Duration)>,
    steps: [u64; LEAK_STEPS],
    /// Pairs of a size and its count, sorted descending by size.
    sizes: Vec<(u64, u64)>,
    growth: StackGrowth,
    apart: Option<NoLeakReason>,
}

/// The blocks that are alive in a dump, or at the end or another time of a recording, by the stacks that allocated
/// them.
///
/// Bytes are usable bytes. Three kinds of blocks are listed apart: blocks that a library or the loader allocates once
/// for the process or a thread (see [`OneTime`]), blocks of ignored stacks (see [`LeakOptions::ignore`]), and blocks
/// that are older than the recording.
#[derive(Debug)]
pub struct Leaks {
    analysis: Analysis,
    outline: Option<RecordingOutline>,
    /// The time at which the blocks are alive; `None` for the end.
    at: Option<Duration>,
    /// The blocks that the program freed before `at`, while the heap only shrank.
    freed: FreedBefore,
    warnings: Vec<String>,
    /// The stacks, sorted: leaks first, then by growth, then descending by bytes.
    groups: Vec<LeakGroup>,
    /// The mappings that the program made and did not remove, sorted descending by bytes.
    mappings: Vec<MappingLeak>,
}

impl Leaks {
    /// Finds the blocks that are alive at the end of a recording, or at the time of the options. `symbolize` looks up
    /// the symbols of a dump that has the recording's stacks, for example with `Dump::symbolize`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Recording::state_at`].
    pub fn new(
        recording: &mut Recording,
        options: &LeakOptions,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<Self, AnalyzeError> {
        let (leaked, freed) = recording.leaked(options.at.unwrap_or(Moment::End))?;
        let kept = recording.kept_mappings(options.at.unwrap_or(Moment::End))?;
        let of_mappings = kept.iter().map(|kept| kept.stack);
        let mut dump = recording.stacks(leaked.iter().map(|leaked| leaked.stack).chain(of_mappings))?;
        symbolize(&mut dump);
        let allocators = allocators(&dump, kept.len());
        let (analysis, of_blocks) = Analysis::with_block_stacks(dump, &whole_stacks());
        let (of_blocks, of_mappings) = of_blocks.split_at(leaked.len().min(of_blocks.len()));
        let mappings = mapped::leaks(kept, allocators, of_mappings, &analysis, options);
        let mut groups: Vec<LeakGroup> = Vec::new();
        let mut by_stack: FxHashMap<(CutStackId, bool), usize> = FxHashMap::default();
        for (leaked, stack) in leaked.into_iter().zip(of_blocks.iter().copied()) {
            let at = *by_stack.entry((stack, leaked.older)).or_insert_with(|| {
                let apart = leaked.older.then_some(NoLeakReason::Older);
                groups.push(LeakGroup { apart, ..LeakGroup::new(stack) });
                groups.len() - 1
            });
            groups[at].add(leaked);
        }
        for group in &mut groups {
            group.sizes = merged(core::mem::take(&mut group.sizes));
            let parts = group.steps.iter().filter(|blocks| **blocks > 0).count();
            group.growth = if parts >= AGAIN { StackGrowth::Again } else { StackGrowth::Once };
        }
        let outline = recording.outline()?;
        let at = options.at.filter(|at| *at != Moment::End).map(|at| at.time(&outline));
        let (outline, warnings) = (Some(outline), recording.warnings());
        Ok(Self { analysis, outline, at, freed, warnings, groups, mappings }.judged(options))
    }

    /// Finds the blocks that are alive in a dump. The dump needs symbols.
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is [`Cumulative`](crate::Mode::Cumulative): such a dump also contains
    /// freed blocks.
    pub fn from_dump(dump: Dump, options: &LeakOptions) -> Result<Self, AnalyzeError> {
        if dump.mode() == Mode::Cumulative {
            return Err(AnalyzeError::Cumulative);
        }
        Ok(Self::from_analysis(Analysis::new(dump, &whole_stacks()), options))
    }

    /// Compares two dumps: finds the stacks that have more live blocks in the second dump than in the first. Both dumps
    /// need symbols.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`from_dump`](Self::from_dump), and an error if the dumps have different modes.
    pub fn from_difference(first: Dump, second: Dump, options: &LeakOptions) -> Result<Self, AnalyzeError> {
        if [first.mode(), second.mode()].contains(&Mode::Cumulative) {
            return Err(AnalyzeError::Cumulative);
        }
        Ok(Self::from_analysis(Analysis::difference(first, second, &whole_stacks())?, options))
    }

    fn from_analysis(analysis: Analysis, options: &LeakOptions) -> Self {
        let mut groups: Vec<LeakGroup> = Vec::new();
        let mut by_stack: FxHashMap<CutStackId, usize> = FxHashMap::default();
        for record in analysis.sections.iter().flat_map(|section| &section.records) {
            let Ok(blocks) = u64::try_from(record.sums.num) else { continue };
            if blocks == 0 {
                continue;
            }
            let at = *by_stack.entry(record.alloc).or_insert_with(|| {
                groups.push(LeakGroup::new(record.alloc));
                groups.len() - 1
            });
            let group = &mut groups[at];
            group.blocks += blocks;
            group.bytes += u128::try_from(record.sums.usable()).unwrap_or_default();
            group.requested += u128::try_from(record.sums.req).unwrap_or_default();
            let size = |(size, count): &(i128, i128)| {
                Some((u64::try_from(*size).ok()?, u64::try_from(*count).ok()?))
            };
            group.sizes.extend(record.sizes.iter().filter_map(size));
        }
        groups.iter_mut().for_each(|group| group.sizes = merged(core::mem::take(&mut group.sizes)));
        let (at, freed) = (None, FreedBefore::default());
        let (warnings, mappings) = (Vec::new(), Vec::new());
        Self { analysis, outline: None, at, freed, warnings, groups, mappings }.judged(options)
    }

    /// Marks the blocks that are not leaks, and sorts all stacks.
    fn judged(mut self, options: &LeakOptions) -> Self {
        let analysis = &self.analysis;
        for group in &mut self.groups {
            let frames: Vec<_> = analysis.frames(group.stack).collect();
            if group.apart.is_some() || frames.iter().any(|text| text.as_str() == NO_STACK) {
                continue;
            }
            let is_ignored =
                || frames.iter().any(|text| options.ignored.iter().any(|rule| rule(text.without_number())));
            let frames: Vec<_> = frames.iter().map(|text| text.frame()).collect();
            let one_time = OneTime::find(&frames).filter(|_| !options.known);
            group.apart =
                one_time.map(NoLeakReason::OneTime).or_else(|| is_ignored().then_some(NoLeakReason::Ignored));
        }
        // Stacks with equal amounts keep their order.
        self.groups.sort_by_key(|group| {
            (group.apart, group.growth, core::cmp::Reverse((group.bytes, group.blocks)), group.stack)
        });
        self
    }

    /// The number of leaked blocks.
    pub fn blocks(&self) -> u64 {
        self.leaked().map(|group| group.blocks).sum()
    }

    /// The usable bytes of leaked blocks.
    pub fn bytes(&self) -> u128 {
        self.leaked().map(|group| group.bytes).sum()
    }

    /// The blocks that the program freed before it ended, while the heap only shrank: their bytes, and the last time at
    /// which they were alive. `None` if the bytes are less than a tenth of the peak, or if the program freed the blocks
    /// in more than a quarter of the time. Also `None` for a dump, and for a time before the end.
    pub fn freed_at_exit(&self) -> Option<(u128, Duration)> {
        let outline = self.outline.as_ref().filter(|_| self.at.is_none())?;
        let FreedBefore { bytes, after } = self.freed;
        let took = outline.end.time.saturating_sub(after);
        let is_exit = bytes >= outline.peak.bytes / EXIT_PART && took <= outline.end.time / EXIT_TIME;
        (bytes > 0 && is_exit).then_some((bytes, after))
    }

    /// The leaks as text, with at most `rows` stacks of each kind of growth.
    pub fn text<'l>(&'l self, rows: usize, options: &'l super::ProgramOptions) -> LeaksText<'l> {
        LeaksText::new(self, rows, options)
    }

    /// The leaks as JSON, with at most `rows` stacks.
    pub fn json(&self, rows: usize) -> LeaksJson<'_> {
        LeaksJson::new(self, rows)
    }

    fn leaked(&self) -> impl Iterator<Item = &LeakGroup> {
        self.groups.iter().filter(|group| group.apart.is_none())
    }

    /// The blocks, bytes and requested bytes that do not count as leaks, by the reason.
    fn apart(&self) -> std::collections::BTreeMap<NoLeakReason, (u64, u128, u128)> {
        let mut sums = std::collections::BTreeMap::new();
        for group in &self.groups {
            if let Some(apart) = group.apart {
                let (blocks, bytes, requested) = sums.entry(apart).or_insert((0, 0, 0));
                *blocks += group.blocks;
                *bytes += group.bytes;
                *requested += group.requested;
            }
        }
        sums
    }
}

impl LeakGroup {
    fn new(stack: CutStackId) -> Self {
        Self {
            stack,
            blocks: 0,
            bytes: 0,
            requested: 0,
            allocations: None,
            times: None,
            steps: [0; LEAK_STEPS],
            sizes: Vec::new(),
            growth: StackGrowth::Unknown,
            apart: None,
        }
    }

    fn add(&mut self, leaked: LeakedStack) {
        self.blocks += leaked.blocks;
        self.bytes += leaked.bytes;
        self.requested += leaked.requested;
        *self.allocations.get_or_insert_default() += leaked.allocations;
        self.times = match (self.times, leaked.times) {
            (Some((first, last)), Some((a, b))) => Some((first.min(a), last.max(b))),
            (times, None) | (None, times) => times,
        };
        self.steps.iter_mut().zip(leaked.steps).for_each(|(sum, blocks)| *sum += blocks);
        self.sizes.extend(leaked.sizes);
    }

    /// Bytes per second between the first and the last allocation. `None` if these times are unknown or equal.
    fn rate(&self) -> Option<f64> {
        let (first, last) = self.times?;
        let seconds = last.checked_sub(first)?.as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }
}

/// Sums the counts of equal sizes; sorted descending by size.
fn merged(sizes: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut by_size = std::collections::BTreeMap::new();
    sizes.into_iter().for_each(|(size, count)| *by_size.entry(size).or_insert(0) += count);
    by_size.into_iter().rev().collect()
}

fn whole_stacks() -> AnalyzeOptions {
    AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).types(true)
}
