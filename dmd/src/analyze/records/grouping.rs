//! Two passes over the blocks: sums of all records, then sizes of those that are shown.

use core::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::super::allocators::AllocatorFrames;
use super::super::dump::{Block, Dump, Mode, TraceId};
use super::super::options::{AnalyzeOptions, SortBy};
use super::super::stacks::{StackId, Stacks};
use super::super::texts::{FrameId, Texts};
use super::{Analysis, Invocation, Record, RecordKind, Section, Sums};

/// What stands in place of a stack that was not recorded.
pub(in super::super) const NO_STACK: &str = "#00: (no stack trace recorded due to --stacks=partial)";

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    alloc: StackId,
    reps: [StackId; 2],
}

struct Group {
    key: Key,
    sums: Sums,
}

/// A dump whose blocks are grouped.
struct Grouped {
    blocks: Vec<Block>,
    addresses: Vec<u64>,
    /// By block.
    groups: Vec<u32>,
    sign: i128,
}

pub(super) struct Grouping<'o> {
    options: &'o AnalyzeOptions,
    kinds: &'static [RecordKind],
    texts: Texts,
    stacks: Stacks,
    by_key: FxHashMap<Key, u32>,
    groups: Vec<Group>,
    dumps: Vec<Grouped>,
    total: Sums,
}

impl<'o> Grouping<'o> {
    pub(super) fn new(mode: Mode, options: &'o AnalyzeOptions) -> Self {
        Self {
            options,
            kinds: RecordKind::of_mode(mode),
            texts: Texts::default(),
            stacks: Stacks::default(),
            by_key: FxHashMap::default(),
            groups: Vec::new(),
            dumps: Vec::new(),
            total: Sums::default(),
        }
    }

    pub(super) fn add(&mut self, mut dump: Dump, sign: i128) {
        let stacks = self.cut_stacks(&mut dump);
        let no_stack = self.texts.add(NO_STACK);
        let no_stack = self.stacks.add(&[no_stack]);
        let stack = |trace: TraceId| trace.index().map(|index| stacks[index]);
        let dark_matter = dump.mode == Mode::DarkMatter;
        let mut groups = Vec::with_capacity(dump.blocks.len());
        for block in &dump.blocks {
            let alloc = stack(block.alloc).unwrap_or(no_stack);
            let report = |trace| if dark_matter { stack(trace) } else { None };
            let reps = block.reps.map(|trace| report(trace).unwrap_or(StackId::NONE));
            let key = Key { alloc, reps };
            let next = self.groups.len() as u32;
            let group = *self.by_key.entry(key).or_insert(next);
            if group == next {
                self.groups.push(Group { key, sums: Sums::default() });
            }
            groups.push(group);
            let num = sign * i128::from(block.num);
            let sums = Sums { num, req: num * i128::from(block.req), slop: num * i128::from(block.slop) };
            self.groups[group as usize].sums.add(sums);
            self.total.add(sums);
        }
        let addresses = dump.scanned.iter().map(|scanned| scanned.addr).collect();
        self.dumps.push(Grouped { blocks: dump.blocks, addresses, groups, sign });
    }

    /// The stack of each trace, in our texts.
    fn cut_stacks(&mut self, dump: &mut Dump) -> Vec<StackId> {
        let texts = core::mem::take(&mut dump.texts);
        let ours = if self.texts.len() == 0 {
            self.texts = texts;
            None
        } else {
            Some(texts.iter().map(|text| self.texts.add(text)).collect::<Vec<FrameId>>())
        };
        if let Some(ours) = ours {
            for frame in &mut dump.frames {
                *frame = ours[frame.index()];
            }
        }
        let which = if dump.has_modules() { AllocatorFrames::CAndRust } else { AllocatorFrames::C };
        let is_allocators: Vec<bool> = match self.options.ignore_alloc_fns {
            true => self.texts.iter().map(|text| which.has(text)).collect(),
            false => Vec::new(),
        };
        let is_allocators = |frame: &FrameId| is_allocators.get(frame.index()).copied().unwrap_or(false);
        dump.traces
            .iter()
            .map(|range| {
                let frames = &dump.frames[range.start as usize..range.end as usize];
                let dropped = frames.iter().take_while(|frame| is_allocators(frame)).count();
                let kept = &frames[dropped..];
                self.stacks.add(&kept[..kept.len().min(self.options.max_frames)])
            })
            .collect()
    }

    pub(super) fn finish(mut self, invocations: Vec<Invocation>) -> Analysis {
        let difference = self.dumps.len() > 1;
        // Stands for no place among the shown.
        const NOWHERE: u32 = u32::MAX;
        let mut unchanged = vec![false; if difference { self.groups.len() } else { 0 }];
        if difference {
            let candidates: Vec<u32> = (0..self.groups.len() as u32)
                .filter(|group| self.groups[*group as usize].sums == Sums::default())
                .collect();
            let mut place = vec![NOWHERE; self.groups.len()];
            for (index, group) in candidates.iter().enumerate() {
                place[*group as usize] = index as u32;
            }
            for (group, sizes) in candidates.iter().zip(self.sizes(&place, candidates.len())) {
                unchanged[*group as usize] = sizes.is_empty();
            }
        }
        let mut place = vec![NOWHERE; self.groups.len()];
        let mut shown = Vec::new();
        let mut sections = Vec::new();
        for &kind in self.kinds {
            let of_kind = |group: &u32| {
                self.kind(self.groups[*group as usize].key) == kind
                    && !unchanged.get(*group as usize).copied().unwrap_or(false)
            };
            let mut groups: Vec<u32> = (0..self.groups.len() as u32).filter(of_kind).collect();
            let all = groups.len();
            groups.retain(|group| self.keeps(self.groups[*group as usize].key));
            let mut sums = Sums::default();
            for group in &groups {
                sums.add(self.groups[*group as usize].sums);
            }
            let kept = groups.len();
            self.sort(&mut groups);
            for group in &groups {
                place[*group as usize] = shown.len() as u32;
                shown.push(*group);
            }
            sections.push((Section { kind, records: Vec::new(), all, kept, sums }, groups.len()));
        }
        let mut sizes = self.sizes(&place, shown.len()).into_iter();
        let mut addresses = self.addresses(&place, shown.len()).into_iter();
        let mut shown = shown.into_iter();
        let sections = sections
            .into_iter()
            .map(|(mut section, len)| {
                section.records = shown
                    .by_ref()
                    .take(len)
                    .map(|group| {
                        let Group { key, sums } = &self.groups[group as usize];
                        Record {
                            sums: *sums,
                            alloc: key.alloc,
                            reps: key.reps,
                            sizes: sizes.next().unwrap_or_default(),
                            addresses: addresses.next().unwrap_or_default(),
                        }
                    })
                    .collect();
                section
            })
            .collect();
        let stacks = core::mem::take(&mut self.stacks);
        let texts = core::mem::take(&mut self.texts);
        Analysis { invocations, sections, total: self.total, stacks, texts }
    }

    fn kind(&self, key: Key) -> RecordKind {
        match (self.kinds, key.reps) {
            ([only], _) => *only,
            (_, [StackId::NONE, _]) => RecordKind::Unreported,
            (_, [_, StackId::NONE]) => RecordKind::OnceReported,
            _ => RecordKind::TwiceReported,
        }
    }

    fn keeps(&self, key: Key) -> bool {
        let lines = |stack| self.stacks.get(stack).iter().map(|frame| self.texts.get(*frame));
        self.options.filters.iter().all(|filter| filter.keeps(lines(key.alloc)))
            && self
                .options
                .report_filters
                .iter()
                .all(|filter| filter.keeps(lines(key.reps[0]).chain(lines(key.reps[1]))))
    }

    /// Sorts as far as the limit, and drops what is beyond.
    fn sort(&self, groups: &mut Vec<u32>) {
        let by = |group: &u32| {
            let sums = &self.groups[*group as usize].sums;
            let (num, usable) = (sums.num.abs(), sums.usable().abs());
            let amounts = match self.options.sort_by {
                SortBy::Usable => [usable, sums.req.abs(), 0],
                SortBy::Req => [sums.req.abs(), 0, 0],
                SortBy::Slop => [sums.slop.abs(), 0, 0],
                SortBy::NumBlocks => [num, usable, sums.req.abs()],
            };
            // The order of first appearance, whatever the sort.
            (Reverse(amounts), *group)
        };
        let limit = self.options.limit;
        if limit == 0 {
            groups.clear();
        } else if groups.len() > limit {
            groups.select_nth_unstable_by_key(limit - 1, by);
            groups.truncate(limit);
        }
        groups.sort_unstable_by_key(by);
    }

    /// Sizes of the groups that have a place.
    fn sizes(&self, place: &[u32], places: usize) -> Vec<Vec<(i128, i128)>> {
        let mut counts: Vec<FxHashMap<i128, i128>> = vec![FxHashMap::default(); places];
        for dump in &self.dumps {
            for (block, group) in dump.blocks.iter().zip(&dump.groups) {
                if let Some(counts) = counts.get_mut(place[*group as usize] as usize) {
                    *counts.entry(block.usable()).or_default() += dump.sign * i128::from(block.num);
                }
            }
        }
        let difference = self.dumps.len() > 1;
        let sorted = |counts: FxHashMap<i128, i128>| {
            let mut sizes: Vec<(i128, i128)> = counts
                .into_iter()
                .filter(|(_, count)| !difference || *count != 0)
                .map(|(size, count)| if count < 0 { (-size, -count) } else { (size, count) })
                .collect();
            sizes.sort_unstable_by_key(|(size, _)| Reverse(size.abs()));
            sizes
        };
        counts.into_iter().map(sorted).collect()
    }

    fn addresses(&self, place: &[u32], places: usize) -> Vec<Vec<u64>> {
        let mut addresses = vec![Vec::new(); places];
        for dump in &self.dumps {
            for (address, group) in dump.addresses.iter().zip(&dump.groups) {
                if let Some(addresses) = addresses.get_mut(place[*group as usize] as usize) {
                    addresses.push(*address);
                }
            }
        }
        addresses
    }
}
