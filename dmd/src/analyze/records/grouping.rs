//! Passes over the blocks: sums of all records, then sizes of those that are shown, and tables.

use core::cmp::Reverse;
use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::super::allocators::AllocatorFrames;
use super::super::dump::{Block, Dump, Mode, Reporter, TraceId};
use super::super::options::{AnalyzeOptions, By, SortBy};
use super::super::owner;
use super::super::stacks::{StackId, Stacks};
use super::super::texts::{FrameId, Texts};
use super::estimate::Estimate;
use super::tables::{self, Rows, Table};
use super::{Analysis, Group, Invocation, Record, RecordKind, Section, Sums};

/// What stands in place of a stack that was not recorded.
pub(in super::super) const NO_STACK: &str = "#00: (no stack trace recorded due to --stacks=partial)";

/// Stands for no place among the shown.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    alloc: StackId,
    reps: [StackId; 2],
}

/// A dump whose blocks are grouped.
struct Grouped {
    blocks: Vec<Block>,
    addresses: Vec<u64>,
    /// By block.
    groups: Vec<u32>,
    /// By trace: the innermost frame that is no allocator's; only if modules are asked for.
    owners: Vec<Option<FrameId>>,
    reporters: Vec<Reporter>,
    sign: i128,
}

pub(super) struct Grouping<'o> {
    options: &'o AnalyzeOptions,
    kinds: &'static [RecordKind],
    texts: Texts,
    stacks: Stacks,
    /// By stack, what is shown in its place; empty if that is always itself.
    shown: Vec<StackId>,
    by_key: FxHashMap<Key, u32>,
    /// The group of blocks that nobody reported, by their stack.
    unreported: Vec<u32>,
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
            shown: Vec::new(),
            by_key: FxHashMap::default(),
            unreported: Vec::new(),
            groups: Vec::new(),
            dumps: Vec::new(),
            total: Sums::default(),
        }
    }

    pub(super) fn add(&mut self, mut dump: Dump, sign: i128) {
        let (stacks, owners) = self.cut_stacks(&mut dump);
        let no_stack = self.texts.add(NO_STACK);
        let no_stack = self.stacks.add(&[no_stack]);
        self.unreported.resize(self.stacks.len(), NOWHERE);
        let stack = |trace: TraceId| trace.index().map(|index| stacks[index]);
        let dark_matter = dump.mode == Mode::DarkMatter;
        let mut groups = Vec::with_capacity(dump.blocks.len());
        for block in &dump.blocks {
            let alloc = stack(block.alloc).unwrap_or(no_stack);
            let report = |trace| if dark_matter { stack(trace) } else { None };
            let reps = block.reps.map(|trace| report(trace).unwrap_or(StackId::NONE));
            let next = self.groups.len() as u32;
            let group = if reps[0] == StackId::NONE && reps[1] == StackId::NONE {
                let group = &mut self.unreported[alloc.index()];
                if *group == NOWHERE {
                    *group = next;
                }
                *group
            } else {
                *self.by_key.entry(Key { alloc, reps }).or_insert(next)
            };
            if group == next {
                self.groups.push(Group {
                    sums: Sums::default(),
                    estimated: false,
                    sampled: false,
                    alloc,
                    reps,
                });
            }
            groups.push(group);
        }
        let grouped = Grouped {
            addresses: match self.options.for_testing {
                true => vec![0xdada_dada; dump.scanned.len()],
                false => dump.scanned.iter().map(|scanned| scanned.addr).collect(),
            },
            blocks: dump.blocks,
            groups,
            owners,
            reporters: dump.reporters,
            sign,
        };
        let mut sums = core::mem::take(&mut self.groups);
        let mut total = self.total;
        grouped.each(&self.keys(&sums), self.options.estimate, |block, group, of_block, estimated| {
            let group = &mut sums[group as usize];
            group.sums.add(of_block);
            group.estimated |= estimated && of_block != Sums::default();
            group.sampled |= block.sampled;
            total.add(of_block);
        });
        self.groups = sums;
        self.total = total;
        self.dumps.push(grouped);
    }

    /// The reports of each group; needed for estimates only.
    fn keys(&self, groups: &[Group]) -> Vec<[StackId; 2]> {
        if self.options.estimate { groups.iter().map(|group| group.reps).collect() } else { Vec::new() }
    }

    /// The stack of each trace, in our texts; and its owner, if that is asked for.
    fn cut_stacks(&mut self, dump: &mut Dump) -> (Vec<StackId>, Vec<Option<FrameId>>) {
        let texts = core::mem::take(&mut dump.texts);
        if self.texts.len() == 0 {
            self.texts = texts;
        } else {
            let ours: Vec<FrameId> = texts.iter().map(|text| self.texts.add(text)).collect();
            for frame in &mut dump.frames {
                *frame = ours[frame.index()];
            }
        }
        let marks = |which: AllocatorFrames| self.texts.iter().map(|text| which.has(text)).collect();
        let dropped: Vec<bool> = match (self.options.ignore_alloc_fns, dump.has_modules()) {
            (false, _) => Vec::new(),
            (true, false) => marks(AllocatorFrames::C),
            (true, true) => marks(AllocatorFrames::CAndRust),
        };
        let with_owners = self.options.by.contains(&By::Module);
        let of_libraries: Vec<bool> = if with_owners { marks(AllocatorFrames::CAndRust) } else { Vec::new() };
        let has = |marks: &[bool], frame: &FrameId| marks.get(frame.index()).copied().unwrap_or(false);
        let mut owners = Vec::new();
        let mut stacks = Vec::with_capacity(dump.traces.len());
        for range in &dump.traces {
            let frames = &dump.frames[range.start as usize..range.end as usize];
            let skipped = frames.iter().take_while(|frame| has(&dropped, frame)).count();
            let kept = &frames[skipped..];
            let kept = &kept[..kept.len().min(self.options.max_frames)];
            stacks.push(self.stacks.add(kept));
            if with_owners {
                let owner = frames.iter().find(|frame| !has(&of_libraries, frame));
                owners.push(owner.or(frames.first()).copied());
            }
        }
        (stacks, owners)
    }

    pub(super) fn finish(mut self, invocations: Vec<Invocation>) -> Analysis {
        let unchanged = self.unchanged();
        self.replace_for_testing();
        let mut place = vec![NOWHERE; self.groups.len()];
        let mut shown = Vec::new();
        let mut of_kind = Vec::new();
        for &kind in self.kinds {
            let is_of_kind = |group: &u32| {
                self.kind(&self.groups[*group as usize]) == kind
                    && !unchanged.get(*group as usize).copied().unwrap_or(false)
            };
            let mut groups: Vec<u32> = (0..self.groups.len() as u32).filter(is_of_kind).collect();
            let all = groups.len();
            groups.retain(|group| self.keeps(&self.groups[*group as usize]));
            let kept = groups.clone();
            self.sort(&mut groups);
            for group in &groups {
                place[*group as usize] = shown.len() as u32;
                shown.push(*group);
            }
            of_kind.push((kind, all, kept, groups.len()));
        }
        let mut sizes = self.sizes(&place, shown.len()).into_iter();
        let mut addresses = self.addresses(&place, shown.len()).into_iter();
        let mut tables = self.tables(&of_kind).into_iter();
        let mut shown = shown.into_iter();
        let filtered = !(self.options.filters.is_empty() && self.options.report_filters.is_empty());
        let mut sections = Vec::new();
        for (kind, all, kept, len) in of_kind {
            let mut sums = Sums::default();
            let mut estimated = false;
            for group in &kept {
                let group = &self.groups[*group as usize];
                sums.add(group.sums);
                // What an estimate moves from one record to another stays within a kind.
                estimated |= if filtered { group.estimated } else { group.sampled };
            }
            let record = |group: u32| {
                let Group { sums, estimated, alloc, reps, .. } = self.groups[group as usize].clone();
                let (alloc, reps) = (self.shown(alloc), reps.map(|stack| self.shown(stack)));
                let sizes = sizes.next().unwrap_or_default();
                let addresses = addresses.next().unwrap_or_default();
                Record { sums, estimated, alloc, reps, sizes, addresses }
            };
            let records = shown.by_ref().take(len).map(record).collect();
            let tables = tables.next().unwrap_or_default();
            sections.push(Section { kind, records, all, kept: kept.len(), sums, estimated, tables });
        }
        let estimated = self.groups.iter().any(|group| group.sampled);
        let stacks = core::mem::take(&mut self.stacks);
        let texts = core::mem::take(&mut self.texts);
        Analysis { invocations, sections, total: self.total, estimated, stacks, texts }
    }

    /// Groups that are not shown: in a difference those that did not change, and those that an estimate
    /// left nothing of.
    fn unchanged(&self) -> Vec<bool> {
        let difference = self.dumps.len() > 1;
        if !difference && !self.options.estimate {
            return Vec::new();
        }
        let empty = |group: &Group| group.sums == Sums::default();
        if !difference {
            return self.groups.iter().map(empty).collect();
        }
        let mut place = vec![NOWHERE; self.groups.len()];
        let mut places = 0;
        for (place, _) in place.iter_mut().zip(&self.groups).filter(|(_, group)| empty(group)) {
            *place = places;
            places += 1;
        }
        let sizes = self.sizes(&place, places as usize);
        let no_sizes = |place: &u32| {
            sizes.get(*place as usize).is_some_and(|sizes| self.options.estimate || sizes.is_empty())
        };
        place.iter().map(no_sizes).collect()
    }

    fn kind(&self, group: &Group) -> RecordKind {
        match (self.kinds, group.reps) {
            ([only], _) => *only,
            (_, [StackId::NONE, _]) => RecordKind::Unreported,
            (_, [_, StackId::NONE]) => RecordKind::OnceReported,
            _ => RecordKind::TwiceReported,
        }
    }

    fn keeps(&self, group: &Group) -> bool {
        let lines = |stack| {
            let frames = self.stacks.get(self.shown(stack)).iter();
            frames.enumerate().map(|(index, frame)| (index + 1, self.texts.get(*frame)))
        };
        let [first, second] = group.reps;
        let reports = || lines(first).chain(lines(second));
        self.options.filters.iter().all(|filter| filter.keeps(lines(group.alloc)))
            && self.options.report_filters.iter().all(|filter| filter.keeps(reports()))
    }

    /// Finds what is shown in place of stacks that differ from run to run.
    fn replace_for_testing(&mut self) {
        if !self.options.for_testing {
            return;
        }
        let one = self.texts.add("#00: ... DMD.cpp ...");
        let one = self.stacks.add(&[one]);
        let of_dmd = |frame: &&FrameId| self.texts.get(**frame).contains("DMD");
        let all = self.stacks.ids();
        let shown =
            all.map(|id| if self.stacks.get(id).iter().filter(of_dmd).count() >= 3 { one } else { id });
        self.shown = shown.collect();
    }

    /// What is shown in place of a stack.
    fn shown(&self, stack: StackId) -> StackId {
        self.shown.get(stack.index()).copied().unwrap_or(stack)
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
        // With each count, whether it is of the first dump, of the last one, or of both.
        let mut counts: Vec<FxHashMap<i128, (i128, [bool; 2])>> = vec![FxHashMap::default(); places];
        let keys = self.keys(&self.groups);
        for dump in &self.dumps {
            dump.each(&keys, self.options.estimate, |block, group, sums, estimated| {
                // Blocks that an estimate took away are not in the record.
                let taken = estimated && sums == Sums::default();
                if let Some(counts) = counts.get_mut(place[group as usize] as usize)
                    && !taken
                {
                    let (count, of) = counts.entry(block.usable()).or_default();
                    *count += dump.sign * i128::from(block.num);
                    of[usize::from(dump.sign > 0)] = true;
                }
            });
        }
        let difference = self.dumps.len() > 1;
        let sorted = |counts: FxHashMap<i128, (i128, [bool; 2])>| {
            let mut sizes: Vec<(i128, i128)> = counts
                .into_iter()
                // Of no blocks at all there may be a size too.
                .filter(|(_, (count, of))| !difference || *count != 0 || *of != [true; 2])
                .map(|(size, (count, of))| {
                    let gone = count < 0 || (count == 0 && of == [true, false]);
                    if gone { (-size, -count) } else { (size, count) }
                })
                .collect();
            sizes.sort_unstable_by_key(|(size, _)| Reverse(size.abs()));
            sizes
        };
        counts.into_iter().map(sorted).collect()
    }

    fn addresses(&self, place: &[u32], places: usize) -> Vec<Vec<u64>> {
        let mut addresses = vec![Vec::new(); places];
        let mut known = vec![false; places];
        // In a difference, those of the second dump; of records that are in the first only, those of it.
        for dump in self.dumps.iter().rev() {
            let is_known = known.clone();
            for (block, group) in dump.groups.iter().enumerate() {
                let place = place[*group as usize] as usize;
                let Some(false) = is_known.get(place) else { continue };
                known[place] = true;
                addresses[place].extend(dump.addresses.get(block));
            }
        }
        addresses
    }

    /// The tables of each kind.
    fn tables(&self, kinds: &[(RecordKind, usize, Vec<u32>, usize)]) -> Vec<Vec<Table>> {
        let mut tables: Vec<Vec<Table>> = kinds.iter().map(|_| Vec::new()).collect();
        if self.options.by.is_empty() {
            return tables;
        }
        let mut kind_of = vec![NOWHERE; self.groups.len()];
        for (index, (_, _, kept, _)) in kinds.iter().enumerate() {
            for group in kept {
                kind_of[*group as usize] = index as u32;
            }
        }
        let limit = self.options.row_limit;
        for by in &self.options.by {
            match by {
                By::Frame => {
                    for ((.., kept, _), tables) in kinds.iter().zip(&mut tables) {
                        let groups: Vec<Group> =
                            kept.iter().map(|group| self.groups[*group as usize].clone()).collect();
                        tables.push(tables::by_frame(&groups, &self.stacks, &self.texts, limit));
                    }
                }
                By::Size => {
                    let key = |_: &Grouped, block: &Block| tables::size_class(block.usable());
                    for (rows, tables) in self.rows(&kind_of, kinds.len(), key).into_iter().zip(&mut tables) {
                        tables.push(rows.table(*by, limit, tables::size_name));
                    }
                }
                By::Module => {
                    let owner = |dump: &Grouped, block: &Block| {
                        let owner = block.alloc.index().and_then(|index| dump.owners[index]);
                        owner.map(|frame| owner::module_of(self.texts.get(frame)))
                    };
                    for (rows, tables) in self.rows(&kind_of, kinds.len(), owner).into_iter().zip(&mut tables)
                    {
                        let name = |module: Option<Cow<'_, str>>| {
                            module.map_or_else(|| "(no stack)".to_owned(), Cow::into_owned)
                        };
                        tables.push(rows.table(*by, limit, name));
                    }
                }
                By::Reporter => {
                    let reporter =
                        |dump: &Grouped, block: &Block, group: u32| self.reporter(dump, block, group);
                    let rows = self.rows_of_groups(&kind_of, kinds.len(), reporter);
                    for (rows, tables) in rows.into_iter().zip(&mut tables) {
                        tables.push(rows.table(*by, limit, |name| name));
                    }
                }
            }
        }
        tables
    }

    fn reporter(&self, dump: &Grouped, block: &Block, group: u32) -> String {
        let name = |nth: usize| {
            let path = dump.reporters.get(block.reporters[nth] as usize).map(|reporter| &*reporter.path);
            if let Some(path) = path.filter(|path| !path.is_empty()) {
                return Some(path);
            }
            let stack = self.groups[group as usize].reps[nth];
            let frames = || self.stacks.get(stack).iter().map(|frame| self.texts.get(*frame));
            let frame = frames().find(|text| !owner::is_measuring(text)).or_else(|| frames().next())?;
            Some(super::super::allocators::split_frame(frame).0)
        };
        match (name(0), name(1)) {
            (None, _) => "(nobody)".to_owned(),
            (Some(first), None) => first.to_owned(),
            (Some(first), Some(second)) => format!("{first} and {second}"),
        }
    }

    fn rows<K: core::hash::Hash + Eq>(
        &self,
        kind_of: &[u32],
        kinds: usize,
        key: impl Fn(&Grouped, &Block) -> K,
    ) -> Vec<Rows<K>> {
        self.rows_of_groups(kind_of, kinds, |dump, block, _| key(dump, block))
    }

    /// What is in the rows of each kind.
    fn rows_of_groups<K: core::hash::Hash + Eq>(
        &self,
        kind_of: &[u32],
        kinds: usize,
        key: impl Fn(&Grouped, &Block, u32) -> K,
    ) -> Vec<Rows<K>> {
        let mut rows: Vec<Rows<K>> = (0..kinds).map(|_| Rows::new()).collect();
        let keys = self.keys(&self.groups);
        for dump in &self.dumps {
            dump.each(&keys, self.options.estimate, |block, group, sums, estimated| {
                if let Some(rows) = rows.get_mut(kind_of[group as usize] as usize)
                    && sums != Sums::default()
                {
                    rows.add(key(dump, block, group), sums, estimated);
                }
            });
        }
        rows
    }
}

impl Grouped {
    /// Calls `each` with a block, its group, what it counts for, and whether that is an estimate.
    fn each(&self, reports: &[[StackId; 2]], estimated: bool, mut each: impl FnMut(&Block, u32, Sums, bool)) {
        let mut estimate = Estimate::default();
        if estimated {
            for (block, group) in self.blocks.iter().zip(&self.groups) {
                estimate.count(block, reports[*group as usize]);
            }
        }
        for (block, group) in self.blocks.iter().zip(&self.groups) {
            let (sums, guessed) = if estimated {
                estimate.stand_in(block, reports[*group as usize])
            } else {
                let num = i128::from(block.num);
                (Sums { num, req: num * i128::from(block.req), slop: num * i128::from(block.slop) }, false)
            };
            let sums =
                Sums { num: self.sign * sums.num, req: self.sign * sums.req, slop: self.sign * sums.slop };
            each(block, *group, sums, guessed || block.sampled);
        }
    }
}
