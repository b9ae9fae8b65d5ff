//! Groups the blocks of dumps, and makes records from the groups that are shown.

use dmd_format::Mode;
use rustc_hash::FxHashMap;

use super::cut::CutStacks;
use super::groups::{GroupedDump, NOWHERE, StackGroup, StackGroups};
use super::options::{AnalyzeOptions, TableKey};
use super::selection::{OfKind, ShownGroups};
use super::stacks::{CutStackId, CutStackTable};
use super::{Analysis, BlockSums, DumpInvocation, KindSection, RecordKind, StackRecord, sizes, tables};
use crate::dump::{Dump, DumpTraceId, FrameTextId, FrameTexts, ReporterAmounts};
use crate::names::TypeNames;

/// The text for a stack that was not recorded.
pub(crate) const NO_STACK: &str = "#00: (no stack trace recorded due to --stacks=partial)";

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct GroupKey {
    alloc: CutStackId,
    reps: [CutStackId; 2],
    reporters: [u32; 2],
}

/// The groups while dumps are added.
pub(super) struct BlockGrouping<'o> {
    groups: StackGroups<'o>,
    by_key: FxHashMap<GroupKey, u32>,
    /// The unreported group of each stack.
    unreported: Vec<u32>,
    /// The index of each reporter, by its path.
    by_path: FxHashMap<String, u32>,
}

impl<'o> BlockGrouping<'o> {
    pub(super) fn new(mode: Mode, options: &'o AnalyzeOptions) -> Self {
        let groups = StackGroups {
            options,
            kinds: RecordKind::for_mode(mode),
            texts: FrameTexts::default(),
            stacks: CutStackTable::default(),
            types: Vec::new(),
            shown: Vec::new(),
            all: Vec::new(),
            dumps: Vec::new(),
            total: BlockSums::default(),
            reporters: Vec::new(),
            faults: Vec::new(),
        };
        Self { groups, by_key: FxHashMap::default(), unreported: Vec::new(), by_path: FxHashMap::default() }
    }

    /// Adds the stacks of a dump. Returns the cut stacks, the types of their blocks, and the stack that represents a
    /// missing stack.
    pub(super) fn add_stacks(&mut self, dump: &mut Dump) -> (CutStacks, TypeNames, CutStackId) {
        let StackGroups { options, texts, stacks, types: of_stacks, .. } = &mut self.groups;
        let with_types = options.types || options.type_frames || options.by.contains(&TableKey::Type);
        let types = if with_types { dump.types() } else { TypeNames::default() };
        let cut = CutStacks::new(dump, options, &types, texts, stacks);
        let no_stack = texts.add(NO_STACK);
        let no_stack = stacks.add(&[no_stack]);
        self.unreported.resize(stacks.len(), NOWHERE);
        if options.types {
            of_stacks.resize(stacks.len(), None);
            for (trace, stack) in cut.stacks.iter().enumerate() {
                of_stacks[stack.index()] = types.shared(trace).cloned();
            }
        }
        (cut, types, no_stack)
    }

    /// Adds the blocks of a dump. `sign` is -1 for the first dump of a difference, whose blocks count negative.
    pub(super) fn add(&mut self, mut dump: Dump, sign: i128) {
        // A difference keeps the faults of the later dump.
        self.groups.faults = dump.report_faults();
        let reporter_of = self.add_reporters(&dump);
        let (CutStacks { stacks: cut, owners }, types, no_stack) = self.add_stacks(&mut dump);
        let stack = |trace: DumpTraceId| trace.index().map(|index| cut[index]);
        let dark_matter = dump.mode == Mode::DarkMatter;
        let mut groups = Vec::with_capacity(dump.blocks.len());
        for block in &dump.blocks {
            let alloc = stack(block.alloc).unwrap_or(no_stack);
            let report = |trace| if dark_matter { stack(trace) } else { None };
            let reps = block.reps.map(|trace| report(trace).unwrap_or(CutStackId::NONE));
            let path = |reporter: u32| reporter_of.get(reporter as usize).copied().unwrap_or(NOWHERE);
            let reporters =
                if self.groups.options.reporters { block.reporters.map(path) } else { [NOWHERE; 2] };
            groups.push(self.group(GroupKey { alloc, reps, reporters }));
        }
        let addresses = match self.groups.options.for_testing {
            true => vec![0xdada_dada; dump.scanned.len()],
            false => dump.scanned.iter().map(|scanned| scanned.addr).collect(),
        };
        let Dump { blocks, reporters, .. } = dump;
        let dump = GroupedDump { blocks, addresses, groups, owners, types, reporters, sign };
        self.sum(&dump);
        self.groups.dumps.push(dump);
    }

    /// Adds the reporters of a dump. Returns the index of each among the reporters of all dumps.
    fn add_reporters(&mut self, dump: &Dump) -> Vec<u32> {
        let all = &mut self.groups.reporters;
        for reporter in &mut *all {
            (reporter.claimed, reporter.marked) = (0, 0);
        }
        let mut index = |reporter: &ReporterAmounts| {
            let index = *self.by_path.entry(reporter.path.clone()).or_insert_with(|| {
                all.push(ReporterAmounts { path: reporter.path.clone(), ..ReporterAmounts::default() });
                all.len() as u32 - 1
            });
            let known = &mut all[index as usize];
            known.claimed = known.claimed.saturating_add(reporter.claimed);
            known.marked = known.marked.saturating_add(reporter.marked);
            index
        };
        dump.reporters.iter().map(&mut index).collect()
    }

    /// The group of a key. Adds a group for a new key.
    fn group(&mut self, key: GroupKey) -> u32 {
        let GroupKey { alloc, reps, reporters } = key;
        let next = self.groups.all.len() as u32;
        let group = if reps[0] == CutStackId::NONE && reps[1] == CutStackId::NONE {
            let group = &mut self.unreported[alloc.index()];
            if *group == NOWHERE {
                *group = next;
            }
            *group
        } else {
            *self.by_key.entry(key).or_insert(next)
        };
        if group == next {
            let sums = BlockSums::default();
            self.groups.all.push(StackGroup {
                sums,
                estimated: false,
                sampled: false,
                alloc,
                reps,
                reporters,
            });
        }
        group
    }

    fn sum(&mut self, dump: &GroupedDump) {
        let StackGroups { options, all, total, .. } = &mut self.groups;
        let reports: Option<Vec<[CutStackId; 2]>> =
            options.estimate.then(|| all.iter().map(|group| group.reps).collect());
        dump.count(reports.map(|reports| move |group: u32| reports[group as usize]), |block, counted| {
            let group = &mut all[counted.group as usize];
            group.sums.add(counted.sums);
            group.estimated |= counted.estimated && !counted.sums.is_empty();
            group.sampled |= block.sampled;
            total.add(counted.sums);
        });
    }

    pub(super) fn finish(mut self, invocations: Vec<DumpInvocation>) -> Analysis {
        let unchanged = sizes::unchanged(&self.groups);
        self.replace_for_testing();
        let groups = self.groups;
        let selection = ShownGroups::new(&groups, &unchanged);
        let mut sizes = sizes::sizes(&groups, &selection.place, selection.len).into_iter();
        let mut addresses = sizes::addresses(&groups, &selection.place, selection.len).into_iter();
        let has_means = invocations.iter().any(|invocation| invocation.has_means);
        let mut tables = tables::tables(&groups, &selection.of_kind, has_means).into_iter();
        let mut sections = Vec::new();
        for of_kind in selection.of_kind {
            let (sums, estimated) = of_kind.sums(&groups);
            let OfKind { kind, all, kept, shown } = of_kind;
            let record = |group: u32| {
                let StackGroup { sums, estimated, alloc, reps, reporters, .. } = groups.get(group).clone();
                let (alloc, reps) = (groups.shown(alloc), reps.map(|stack| groups.shown(stack)));
                let sizes = sizes.next().filter(|_| !has_means || sums.num == 1).unwrap_or_default();
                let addresses = addresses.next().unwrap_or_default();
                StackRecord { sums, estimated, alloc, reps, reporters, sizes, addresses }
            };
            let records = shown.into_iter().map(record).collect();
            let tables = tables.next().unwrap_or_default();
            sections.push(KindSection { kind, records, all, kept: kept.len(), sums, estimated, tables });
        }
        let estimated = groups.all.iter().any(|group| group.sampled);
        let StackGroups { stacks, texts, types, total, reporters, faults, .. } = groups;
        Analysis { invocations, sections, total, estimated, stacks, texts, types, reporters, faults }
    }

    /// Replaces stacks that differ from run to run.
    fn replace_for_testing(&mut self) {
        let StackGroups { options, texts, stacks, shown, .. } = &mut self.groups;
        if !options.for_testing {
            return;
        }
        let one = texts.add("#00: ... DMD.cpp ...");
        let one = stacks.add(&[one]);
        let of_dmd = |text: &&FrameTextId| texts.get(**text).as_str().contains("DMD");
        let replaced = |id| if stacks.get(id).iter().filter(of_dmd).count() >= 3 { one } else { id };
        *shown = stacks.ids().map(replaced).collect();
    }
}
