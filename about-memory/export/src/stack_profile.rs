//! Stacks with amounts: the intermediate form from which all formats of stacks are written.
//!
//! A [`StackProfile`] is canonical: its frames, stacks, labels and samples are sorted by their contents and have no
//! duplicates. So equal data gives equal files, whatever the order in which it was built.

mod build;
mod owners;

use core::ops::Range;
use std::time::Duration;

use crate::texts::{ProfileTexts, StoredTextId};

pub use build::{NewStacks, StackProfileBuilder};
pub use owners::{BlockOwner, OwnerSum, OwnerSums};

/// A kind of amount that the samples of a profile have.
///
/// A dump has blocks and bytes of one time. The history of a program has more amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProfileValue {
    /// Blocks that were ever allocated.
    AllocatedBlocks,
    /// Bytes that were ever allocated.
    AllocatedBytes,
    /// Blocks that are live at the time of the profile.
    LiveBlocks,
    /// Bytes of the blocks that are live at the time of the profile.
    LiveBytes,
    /// Bytes that the program requested for the blocks that are live at the time of the profile.
    LiveRequestedBytes,
    /// Blocks that were live at the peak of the whole heap.
    PeakBlocks,
    /// Bytes of the blocks that were live at the peak of the whole heap.
    PeakBytes,
    /// The blocks that the stack held when it held the most bytes.
    OwnPeakBlocks,
    /// The bytes that the stack held when it held the most bytes.
    OwnPeakBytes,
    /// The sum of the life times of all blocks, in microseconds.
    Lifetimes,
}

impl ProfileValue {
    /// The readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllocatedBlocks => "allocated blocks",
            Self::AllocatedBytes => "allocated bytes",
            Self::LiveBlocks => "live blocks",
            Self::LiveBytes => "live bytes",
            Self::LiveRequestedBytes => "requested live bytes",
            Self::PeakBlocks => "blocks at the peak",
            Self::PeakBytes => "bytes at the peak",
            Self::OwnPeakBlocks => "blocks at the peak of the stack",
            Self::OwnPeakBytes => "bytes at the peak of the stack",
            Self::Lifetimes => "life times",
        }
    }

    /// The unit: `bytes`, `count` or `microseconds`.
    pub fn unit(self) -> &'static str {
        match self {
            Self::AllocatedBytes
            | Self::LiveBytes
            | Self::LiveRequestedBytes
            | Self::PeakBytes
            | Self::OwnPeakBytes => "bytes",
            Self::Lifetimes => "microseconds",
            _ => "count",
        }
    }
}

/// A program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileModule {
    /// The path of its file.
    pub path: String,
    /// The build id, hexadecimal; empty if it is unknown.
    pub build_id: String,
    /// Whether the offsets of frames are positions in the file. Otherwise they are addresses in the file.
    pub has_file_offsets: bool,
}

/// The index of a module in [`StackProfile::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileModuleId(pub(crate) u32);

impl ProfileModuleId {
    /// The index in [`StackProfile::modules`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The id of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileFrameId(pub(crate) u32);

/// The id of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileStackId(pub(crate) u32);

/// The id of the labels of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleLabelsId(pub(crate) u32);

/// A call on a stack. Unknown parts are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProfileFrame<'t> {
    /// The readable name of the function.
    pub function: Option<&'t str>,
    /// The mangled name of the function.
    pub system_name: Option<&'t str>,
    /// The source file.
    pub file: Option<&'t str>,
    /// The line of the file.
    pub line: Option<u32>,
    /// The column of the line.
    pub column: Option<u32>,
    /// The program or library that holds the code.
    pub module: Option<ProfileModuleId>,
    /// The position of the call instruction, as an address in the module's file.
    pub offset: Option<u64>,
    /// Whether the compiler inlined the function into the next frame, which has the same offset.
    pub inlined: bool,
}

/// The facts about the blocks of a sample, except their stack. Unknown facts are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleLabels<'t> {
    /// Whether reporters reported the blocks: `unreported`, `once` or `twice`.
    pub kind: Option<&'t str>,
    /// The path of the reporter that reported the blocks.
    pub reporter: Option<&'t str>,
    /// The type of the blocks.
    pub type_name: Option<&'t str>,
    /// The thread that allocated the blocks.
    pub thread: Option<&'t str>,
}

impl<'t> SampleLabels<'t> {
    /// The known labels. Each has its name in files.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'t str)> + use<'t> {
        let all = [
            ("kind", self.kind),
            ("reporter", self.reporter),
            ("type", self.type_name),
            ("thread", self.thread),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Facts about the whole profile. Unknown facts are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileFacts {
    /// The name of the program, or its command line.
    pub program: String,
    /// The process id.
    pub pid: Option<u32>,
    /// A description of the profile, as a sentence.
    pub comment: String,
    /// The time of the profile, since 1970.
    pub time: Option<Duration>,
    /// The time from the start of the recording to the time of the profile; for a difference, the time between the two
    /// profiles.
    pub duration: Option<Duration>,
    /// The time from the start of the recording to the heap's peak.
    pub peak: Option<Duration>,
    /// The mean distance between the sampled points in bytes, if the amounts are estimates from a sample by bytes.
    pub sample_bytes: Option<u64>,
}

/// Equal blocks, with their stack, their labels, their size, and an amount for each of [`StackProfile::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileSample<'a> {
    /// The stack.
    pub stack: ProfileStackId,
    /// The labels.
    pub labels: SampleLabelsId,
    /// The size of each block in bytes; `None` if it is unknown.
    pub size: Option<u64>,
    /// The amounts, in the order of [`StackProfile::values`].
    pub amounts: &'a [i64],
}

/// The allocation or the free of a block, at a time. The time line of a history consists of these events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileEvent {
    /// The time since the start.
    pub time: Duration,
    /// The stack that allocated the block.
    pub stack: ProfileStackId,
    /// The bytes of the block.
    pub size: u64,
    /// Whether the block is freed. Otherwise it is allocated.
    pub is_free: bool,
}

impl ProfileEvent {
    /// Makes an event: the stack allocates a block of this size, or the block is freed.
    pub fn new(time: Duration, stack: ProfileStackId, size: u64, is_free: bool) -> Self {
        Self { time, stack, size, is_free }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct StoredFrame {
    function: Option<StoredTextId>,
    file: Option<StoredTextId>,
    line: Option<u32>,
    column: Option<u32>,
    module: Option<ProfileModuleId>,
    offset: Option<u64>,
    inlined: bool,
    system_name: Option<StoredTextId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct StoredLabels {
    kind: Option<StoredTextId>,
    reporter: Option<StoredTextId>,
    type_name: Option<StoredTextId>,
    thread: Option<StoredTextId>,
}

/// The key of a sample. `size` is the size plus 1, or 0 if the size is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SampleKey {
    stack: ProfileStackId,
    labels: SampleLabelsId,
    size: u64,
}

/// Stacks with amounts. Use a [`StackProfileBuilder`] to make one.
#[derive(Debug)]
pub struct StackProfile {
    facts: ProfileFacts,
    values: Vec<ProfileValue>,
    texts: ProfileTexts,
    modules: Vec<ProfileModule>,
    frames: Vec<StoredFrame>,
    /// Whether a frame is inlined into the next frame at the same address.
    joins: Vec<bool>,
    calls: Vec<ProfileFrameId>,
    stacks: Vec<Range<u32>>,
    labels: Vec<StoredLabels>,
    keys: Vec<SampleKey>,
    /// The amounts: for each key, one for each value.
    amounts: Vec<i64>,
    totals: Vec<i128>,
}

impl StackProfile {
    /// Facts about the whole profile.
    pub fn facts(&self) -> &ProfileFacts {
        &self.facts
    }

    /// The kinds of amounts that each sample has, in order.
    pub fn values(&self) -> &[ProfileValue] {
        &self.values
    }

    /// The index of a value among the amounts of a sample; `None` if it was not recorded.
    pub fn index_of(&self, value: ProfileValue) -> Option<usize> {
        self.values.iter().position(|known| *known == value)
    }

    /// The sum of a value over all samples; `None` if it was not recorded.
    pub fn total(&self, value: ProfileValue) -> Option<i128> {
        Some(self.totals[self.index_of(value)?])
    }

    /// The programs and libraries, the main program first.
    pub fn modules(&self) -> &[ProfileModule] {
        &self.modules
    }

    /// The number of different frames.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The frame with this id.
    pub fn frame(&self, id: ProfileFrameId) -> ProfileFrame<'_> {
        let StoredFrame { function, system_name, file, line, column, module, offset, inlined } =
            self.frames[id.0 as usize];
        let text = |id: Option<StoredTextId>| id.map(|id| self.texts.get(id));
        let (function, system_name, file) = (text(function), text(system_name), text(file));
        ProfileFrame { function, system_name, file, line, column, module, offset, inlined }
    }

    fn place(&self, id: ProfileFrameId) -> Option<(ProfileModuleId, u64)> {
        let StoredFrame { module, offset, .. } = self.frames[id.0 as usize];
        module.zip(offset)
    }

    /// The frames of a stack, grouped by address. A group has the functions that the compiler inlined at the address,
    /// innermost first, and then the function that contains them.
    pub(crate) fn addresses(&self, stack: ProfileStackId) -> impl Iterator<Item = &[ProfileFrameId]> {
        let mut rest = self.stack(stack);
        core::iter::from_fn(move || {
            let first = *rest.first()?;
            let mut end = 1;
            while self.joins[rest[end - 1].0 as usize]
                && rest.get(end).is_some_and(|next| self.place(*next) == self.place(first))
            {
                end += 1;
            }
            let (frames, after) = rest.split_at(end);
            rest = after;
            Some(frames)
        })
    }

    /// The texts of frames and labels, sorted.
    pub(crate) fn texts(&self) -> &ProfileTexts {
        &self.texts
    }

    /// The function, the system name and the file of a frame.
    pub(crate) fn frame_texts(&self, id: ProfileFrameId) -> [Option<StoredTextId>; 3] {
        let StoredFrame { function, system_name, file, .. } = self.frames[id.0 as usize];
        [function, system_name, file]
    }

    /// The texts of the known labels, each with its name in files.
    pub(crate) fn label_texts(
        &self,
        id: SampleLabelsId,
    ) -> impl Iterator<Item = (&'static str, StoredTextId)> {
        let StoredLabels { kind, reporter, type_name, thread } = self.labels[id.0 as usize];
        let all = [("kind", kind), ("reporter", reporter), ("type", type_name), ("thread", thread)];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// The number of different stacks.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The frames of a stack, innermost first.
    pub fn stack(&self, id: ProfileStackId) -> &[ProfileFrameId] {
        let Range { start, end } = self.stacks[id.0 as usize];
        &self.calls[start as usize..end as usize]
    }

    /// The labels with this id.
    pub fn labels(&self, id: SampleLabelsId) -> SampleLabels<'_> {
        let StoredLabels { kind, reporter, type_name, thread } = self.labels[id.0 as usize];
        let text = |id: Option<StoredTextId>| id.map(|id| self.texts.get(id));
        SampleLabels {
            kind: text(kind),
            reporter: text(reporter),
            type_name: text(type_name),
            thread: text(thread),
        }
    }

    /// All samples, sorted by stack, labels and size.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = ProfileSample<'_>> + Clone {
        (0..self.keys.len()).map(|index| self.sample(index))
    }

    pub(crate) fn sample(&self, index: usize) -> ProfileSample<'_> {
        let SampleKey { stack, labels, size } = self.keys[index];
        let width = self.values.len();
        let amounts = &self.amounts[index * width..(index + 1) * width];
        ProfileSample { stack, labels, size: size.checked_sub(1), amounts }
    }

    /// Calls `each` for each combination of stack and labels, with the sums over all sizes. Sorted by stack, then by
    /// labels.
    pub(crate) fn without_sizes<E>(
        &self,
        mut each: impl FnMut(ProfileStackId, SampleLabelsId, &[i128]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut sums = vec![0_i128; self.values.len()];
        let mut samples = self.samples().peekable();
        while let Some(ProfileSample { stack, labels, amounts, .. }) = samples.next() {
            sums.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += i128::from(*amount));
            if samples.peek().is_none_or(|next| (next.stack, next.labels) != (stack, labels)) {
                each(stack, labels, &sums)?;
                sums.fill(0);
            }
        }
        Ok(())
    }

    /// The text of a frame without its line: the function or, if it is unknown, the position in its module.
    pub(crate) fn frame_name(&self, frame: &ProfileFrame<'_>) -> String {
        match (frame.function, frame.module) {
            (Some(function), _) => function.to_owned(),
            (None, Some(module)) => {
                let path = &self.modules[module.0 as usize].path;
                let file = path.rsplit('/').next().unwrap_or(path);
                format!("{file} +0x{:x}", frame.offset.unwrap_or_default())
            }
            (None, None) => "???".to_owned(),
        }
    }
}

/// The name of the frame for blocks whose stack was not recorded.
#[cfg(any(feature = "dmd", feature = "snapshot"))]
pub(crate) const NO_STACK: &str = "(no stack recorded)";

/// The amount as the 64-bit integer of a sample.
#[cfg(any(feature = "dmd", feature = "snapshot"))]
pub(crate) fn amount(value: ProfileValue, exact: i128) -> Result<i64, crate::ExportError> {
    let most = i128::from(i64::MAX);
    i64::try_from(exact).map_err(|_| crate::ExportError::TooLarge("a profile", value.name(), exact, most))
}
