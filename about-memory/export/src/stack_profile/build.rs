//! Builds stacks in any order, and sorts them.

use core::ops::Range;
use std::thread;

use rustc_hash::FxHashMap;

use super::{
    ProfileEvent, ProfileFacts, ProfileFrame, ProfileFrameId, ProfileModule, ProfileModuleId, ProfileStackId,
    ProfileValue, SampleKey, SampleLabels, SampleLabelsId, StackProfile, StoredFrame, StoredLabels,
};
use crate::error::ExportError;
use crate::grouped::grouped;
use crate::texts::{ProfileTexts, StoredTextId};

/// Collects samples for a [`StackProfile`].
///
/// ```
/// use memory_export::{ProfileFrame, SampleLabels, StackProfileBuilder, ProfileValue};
///
/// let mut builder = StackProfileBuilder::new(&[ProfileValue::LiveBlocks, ProfileValue::LiveBytes]);
/// let frame = builder.frame(&ProfileFrame { function: Some("app::load"), ..ProfileFrame::default() });
/// let stack = builder.stack(&[frame]);
/// let labels = builder.labels(&SampleLabels { kind: Some("unreported"), ..SampleLabels::default() });
/// builder.sample(stack, labels, Some(64), &[2, 128]);
/// let stacks = builder.finish()?;
/// assert_eq!(stacks.total(ProfileValue::LiveBytes), Some(128));
/// # Ok::<(), memory_export::ExportError>(())
/// ```
#[derive(Debug)]
pub struct StackProfileBuilder {
    facts: ProfileFacts,
    values: Vec<ProfileValue>,
    texts: ProfileTexts,
    modules: Vec<ProfileModule>,
    by_module: FxHashMap<(StoredTextId, StoredTextId), ProfileModuleId>,
    frames: Vec<StoredFrame>,
    calls: Vec<ProfileFrameId>,
    stacks: Vec<Range<u32>>,
    labels: Vec<StoredLabels>,
    by_labels: FxHashMap<StoredLabels, SampleLabelsId>,
    keys: Vec<SampleKey>,
    amounts: Vec<i64>,
}

impl StackProfileBuilder {
    /// Makes a builder for samples with these amounts, in this order.
    pub fn new(values: &[ProfileValue]) -> Self {
        Self {
            facts: ProfileFacts::default(),
            values: values.to_vec(),
            texts: ProfileTexts::default(),
            modules: Vec::new(),
            by_module: FxHashMap::default(),
            frames: Vec::new(),
            calls: Vec::new(),
            stacks: Vec::new(),
            labels: Vec::new(),
            by_labels: FxHashMap::default(),
            keys: Vec::new(),
            amounts: Vec::new(),
        }
    }

    /// The facts about the whole profile, for the caller to set.
    pub fn facts(&mut self) -> &mut ProfileFacts {
        &mut self.facts
    }

    /// Makes room for this many samples.
    pub fn reserve(&mut self, samples: usize) {
        self.keys.reserve_exact(samples);
        self.amounts.reserve_exact(samples * self.values.len());
    }

    /// Adds a module. The first module must be the main program. Modules with equal paths and build ids are merged.
    pub fn module(&mut self, path: &str, build_id: &str) -> ProfileModuleId {
        let key = (self.texts.id(path), self.texts.id(build_id));
        *self.by_module.entry(key).or_insert_with(|| {
            let (path, build_id) = (path.to_owned(), build_id.to_owned());
            self.modules.push(ProfileModule { path, build_id, has_file_offsets: false });
            ProfileModuleId(self.modules.len() as u32 - 1)
        })
    }

    /// Marks a module: the offsets of its frames are positions in the file, not addresses.
    pub fn set_file_offsets(&mut self, module: ProfileModuleId) {
        if let Some(module) = self.modules.get_mut(module.index()) {
            module.has_file_offsets = true;
        }
    }

    /// Adds a frame. Equal frames are merged by [`finish`](Self::finish).
    pub fn frame(&mut self, frame: &ProfileFrame<'_>) -> ProfileFrameId {
        let ProfileFrame { function, system_name, file, line, column, module, offset, inlined } = *frame;
        let mut id = |text: Option<&str>| text.map(|text| self.texts.id(text));
        let (function, system_name, file) = (id(function), id(system_name), id(file));
        self.frames.push(StoredFrame { function, file, line, column, module, offset, inlined, system_name });
        ProfileFrameId(self.frames.len() as u32 - 1)
    }

    /// Adds a stack, innermost frame first. Equal stacks are merged by [`finish`](Self::finish).
    pub fn stack(&mut self, frames: &[ProfileFrameId]) -> ProfileStackId {
        let start = self.calls.len() as u32;
        self.calls.extend_from_slice(frames);
        self.stacks.push(start..self.calls.len() as u32);
        ProfileStackId(self.stacks.len() as u32 - 1)
    }

    /// Adds labels.
    pub fn labels(&mut self, labels: &SampleLabels<'_>) -> SampleLabelsId {
        let SampleLabels { kind, reporter, type_name, thread } = *labels;
        let mut id = |text: Option<&str>| text.map(|text| self.texts.id(text));
        let stored = StoredLabels {
            kind: id(kind),
            reporter: id(reporter),
            type_name: id(type_name),
            thread: id(thread),
        };
        *self.by_labels.entry(stored).or_insert_with(|| {
            self.labels.push(stored);
            SampleLabelsId(self.labels.len() as u32 - 1)
        })
    }

    /// Adds amounts to the sample with this stack, these labels and this size. The size `u64::MAX` counts as unknown.
    ///
    /// # Panics
    ///
    /// Panics if the number of amounts differs from the number of values.
    pub fn sample(
        &mut self,
        stack: ProfileStackId,
        labels: SampleLabelsId,
        size: Option<u64>,
        amounts: &[i64],
    ) {
        assert_eq!(amounts.len(), self.values.len(), "a sample needs one amount for each value");
        let size = size.map_or(0, |size| size.wrapping_add(1));
        self.keys.push(SampleKey { stack, labels, size });
        self.amounts.extend_from_slice(amounts);
    }

    /// Sorts all samples, and adds up equal samples.
    ///
    /// # Errors
    ///
    /// Returns [`ExportError::TooLarge`] if a sum exceeds 63 bits.
    pub fn finish(self) -> Result<StackProfile, ExportError> {
        Ok(self.finish_with_stacks()?.0)
    }

    /// Finishes like [`finish`](Self::finish). Also returns the new ids of stacks, for the [`ProfileEvent`]s of a time
    /// line.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`finish`](Self::finish).
    pub fn finish_with_stacks(self) -> Result<(StackProfile, NewStacks), ExportError> {
        let Self { facts, values, texts, modules, frames, calls, stacks, labels, mut keys, amounts, .. } =
            self;
        let (texts, new_texts) = texts.sorted();
        let text = |id: Option<StoredTextId>| id.map(|id| new_texts[id.0 as usize]);
        let (frames, new_frames) = unique(frames.into_iter().map(|frame| StoredFrame {
            function: text(frame.function),
            system_name: text(frame.system_name),
            file: text(frame.file),
            ..frame
        }));
        let (labels, new_labels) = unique(labels.into_iter().map(|labels| StoredLabels {
            kind: text(labels.kind),
            reporter: text(labels.reporter),
            type_name: text(labels.type_name),
            thread: text(labels.thread),
        }));
        let calls: Vec<ProfileFrameId> =
            calls.into_iter().map(|frame| ProfileFrameId(new_frames[frame.0 as usize])).collect();
        let (calls, stacks, new_stacks) = sorted_stacks(&calls, &stacks);
        for key in &mut keys {
            key.stack = ProfileStackId(new_stacks[key.stack.0 as usize]);
            key.labels = SampleLabelsId(new_labels[key.labels.0 as usize]);
        }
        let (keys, amounts) = merged(&keys, &amounts, &values, stacks.len())?;
        let totals = (0..values.len())
            .map(|column| amounts.iter().skip(column).step_by(values.len()).map(|n| i128::from(*n)).sum())
            .collect();
        let joins = frames.iter().map(|f| f.inlined && f.module.is_some() && f.offset.is_some()).collect();
        let stacks = StackProfile {
            facts,
            values,
            texts,
            modules,
            frames,
            joins,
            calls,
            stacks,
            labels,
            keys,
            amounts,
            totals,
        };
        Ok((stacks, NewStacks(new_stacks)))
    }
}

/// The new id of each stack of a builder.
#[derive(Debug)]
pub struct NewStacks(Vec<u32>);

impl NewStacks {
    /// The new id of a stack.
    pub fn stack(&self, stack: ProfileStackId) -> ProfileStackId {
        ProfileStackId(self.0[stack.0 as usize])
    }

    /// The event, with the new id of its stack.
    pub fn event(&self, event: ProfileEvent) -> ProfileEvent {
        ProfileEvent { stack: self.stack(event.stack), ..event }
    }
}

/// The elements sorted and without duplicates, and the new index of each element.
fn unique<T: Ord + Copy>(all: impl Iterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let all: Vec<T> = all.collect();
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_unstable_by_key(|index| all[*index as usize]);
    let mut new = vec![0; all.len()];
    let mut kept: Vec<T> = Vec::new();
    for old in order {
        let element = all[old as usize];
        if kept.last() != Some(&element) {
            kept.push(element);
        }
        new[old as usize] = kept.len() as u32 - 1;
    }
    (kept, new)
}

/// The stacks sorted and without duplicates: their frames, and the range of each stack. Also the new index of each
/// stack.
fn sorted_stacks(
    calls: &[ProfileFrameId],
    stacks: &[Range<u32>],
) -> (Vec<ProfileFrameId>, Vec<Range<u32>>, Vec<u32>) {
    let get = |index: u32| {
        let Range { start, end } = stacks[index as usize];
        &calls[start as usize..end as usize]
    };
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    // Compared from the outermost frame, so that stacks with a common start are neighbors.
    order.sort_unstable_by(|a, b| get(*a).iter().rev().cmp(get(*b).iter().rev()));
    let mut new = vec![0; stacks.len()];
    let mut kept_calls = Vec::with_capacity(calls.len());
    let mut kept: Vec<Range<u32>> = Vec::with_capacity(stacks.len());
    let mut last: Option<u32> = None;
    for old in order {
        if last.is_none_or(|last| get(last) != get(old)) {
            let start = kept_calls.len() as u32;
            kept_calls.extend_from_slice(get(old));
            kept.push(start..kept_calls.len() as u32);
        }
        last = Some(old);
        new[old as usize] = kept.len() as u32 - 1;
    }
    (kept_calls, kept, new)
}

/// The keys sorted and without duplicates, with the sums of their amounts. Keys whose sums are all 0 are left out.
fn merged(
    keys: &[SampleKey],
    amounts: &[i64],
    values: &[ProfileValue],
    stacks: usize,
) -> Result<(Vec<SampleKey>, Vec<i64>), ExportError> {
    // Grouping by stack first is faster than sorting millions of keys at once.
    let (ends, order) = grouped(keys.len(), stacks, |index| keys[index].stack.0 as usize);
    let of_stacks = |ends: &[usize], start: usize| merged_of(keys, amounts, values, ends, &order, start);
    let (first, second) = ends.split_at(ends.partition_point(|end| *end < keys.len() / 2));
    let middle = first.last().copied().unwrap_or(0);
    let (first, second) = thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, || of_stacks(second, middle));
        let first = of_stacks(first, 0);
        let second = match helper {
            Ok(helper) => helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => of_stacks(second, middle),
        };
        (first, second)
    });
    let ((mut kept, mut sums), (more_kept, more_sums)) = (first?, second?);
    kept.extend(more_kept);
    sums.extend(more_sums);
    Ok((kept, sums))
}

/// Merges the keys of some stacks for [`merged`]. `ends` contains the end of each stack in `order`. The first stack
/// starts at `start`.
fn merged_of(
    keys: &[SampleKey],
    amounts: &[i64],
    values: &[ProfileValue],
    ends: &[usize],
    order: &[u32],
    mut start: usize,
) -> Result<(Vec<SampleKey>, Vec<i64>), ExportError> {
    let width = values.len();
    let most = ends.last().map_or(0, |end| end - start);
    let mut kept: Vec<SampleKey> = Vec::with_capacity(most);
    let mut sums: Vec<i64> = Vec::with_capacity(most * width);
    let mut of_stack: Vec<(SampleKey, u32)> = Vec::new();
    for end in ends {
        let indices = &order[core::mem::replace(&mut start, *end)..*end];
        of_stack.extend(indices.iter().map(|index| (keys[*index as usize], *index)));
        of_stack.sort_unstable();
        for (key, index) in of_stack.drain(..) {
            let own = &amounts[index as usize * width..(index as usize + 1) * width];
            if kept.last() == Some(&key) {
                let start = sums.len() - width;
                for ((sum, amount), value) in sums[start..].iter_mut().zip(own).zip(values) {
                    let exact = i128::from(*sum) + i128::from(*amount);
                    *sum = i64::try_from(exact).map_err(|_| {
                        ExportError::TooLarge("a profile", value.name(), exact, i128::from(i64::MAX))
                    })?;
                }
            } else {
                drop_last_if_nothing(&mut kept, &mut sums, width);
                kept.push(key);
                sums.extend_from_slice(own);
            }
        }
    }
    drop_last_if_nothing(&mut kept, &mut sums, width);
    Ok((kept, sums))
}

/// Drops the last key if all of its sums are 0.
fn drop_last_if_nothing(kept: &mut Vec<SampleKey>, sums: &mut Vec<i64>, width: usize) {
    let start = sums.len().saturating_sub(width);
    if !kept.is_empty() && sums[start..].iter().all(|sum| *sum == 0) {
        kept.pop();
        sums.truncate(start);
    }
}
