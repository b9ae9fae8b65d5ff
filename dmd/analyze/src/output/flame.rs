//! Merges all stacks into one tree, as a flame graph shows them.

use core::cmp::Reverse;
use core::ops::Range;
use std::collections::{BinaryHeap, HashMap};

use memory_report::TextPool;

use crate::dump::DumpTime;
use crate::records::{
    Analysis, BlockSums, CutStackId, KindSection, RecordKind, ReportFault, SMALL, StackRecord, kind_name,
    reporter_name,
};

/// The names of the root.
const ALL: &str = "all";
const ALL_AT_PEAK: &str = "all, at the heap's peak";

/// The stacks of an analysis as one tree, outermost frames first.
///
/// In a dump of dark-matter mode, the kinds of records are the frames below the root, and the reporters are the frames
/// below the kinds of reported records. The tree leaves out records without bytes and, in a difference, records that
/// shrank.
#[derive(Clone, Debug)]
pub struct FlameGraph {
    names: TextPool,
    frames: Vec<FlameNode>,
    faults: Vec<ReportFault>,
}

#[derive(Clone, Copy, Debug)]
struct FlameNode {
    name: u32,
    children: u32,
    amount: FlameAmount,
}

/// The blocks and bytes of a frame and all frames below it.
#[derive(Clone, Copy, Debug, Default)]
struct FlameAmount {
    sums: BlockSums,
    estimated: bool,
}

impl FlameAmount {
    fn add(&mut self, other: Self) {
        self.sums.add(other.sums);
        self.estimated |= other.estimated;
    }
}

/// One frame of a [`FlameGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlameFrame<'a> {
    /// The function or, if it is unknown, the place.
    pub name: &'a str,
    /// The number of frames directly below this frame.
    pub children: usize,
    /// The sums of this frame and of all frames below it.
    pub sums: BlockSums,
    /// Whether the sums are estimates.
    pub estimated: bool,
}

impl Analysis {
    /// Merges the shown records into a tree of the `most` largest frames, the root not counted. Below a frame, one
    /// frame `(small)` represents all frames that did not fit, so that all sums stay exact.
    ///
    /// For all records, set [`limit`](crate::AnalyzeOptions::limit) and
    /// [`max_frames`](crate::AnalyzeOptions::max_frames) high.
    pub fn flame_graph(&self, most: usize) -> FlameGraph {
        FlameGrowth::new(self).grow(most)
    }
}

impl FlameGraph {
    /// All frames in preorder: each frame is followed by the frames below it, first `(small)` and then the largest. The
    /// first frame is the root. It has the sums of all records.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = FlameFrame<'_>> {
        self.frames.iter().map(|frame| FlameFrame {
            name: self.names.get(frame.name),
            children: frame.children as usize,
            sums: frame.amount.sums,
            estimated: frame.amount.estimated,
        })
    }

    /// Reported pointers that do not point to the start of a live block. No frame contains them.
    pub fn faults(&self) -> &[ReportFault] {
        &self.faults
    }
}

/// A tree that grows step by step: each step adds the largest frame that is not in the tree yet. A frame is never larger
/// than its caller, so the caller of each frame is already in the tree.
struct FlameGrowth<'a> {
    analysis: &'a Analysis,
    names: FlameNames,
    records: Vec<(&'a KindSection, &'a StackRecord)>,
    /// The frames made so far. A frame comes after its caller.
    nodes: Vec<GrownNode>,
}

struct GrownNode {
    name: u32,
    caller: u32,
    amount: FlameAmount,
    /// The number of frames from the root to this one.
    depth: usize,
    /// The records whose stacks contain this frame. Empty after the frame was expanded.
    records: Vec<u32>,
    shown: bool,
}

impl<'a> FlameGrowth<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        let all = analysis.sections.iter().flat_map(|section| {
            section
                .records
                .iter()
                .filter(|record| record.sums.usable() > 0)
                .map(move |record| (section, record))
        });
        let mut growth =
            Self { analysis, names: FlameNames::default(), records: all.collect(), nodes: Vec::new() };
        let mut amount = FlameAmount::default();
        growth.records.iter().for_each(|(_, record)| amount.sums.add(record.sums));
        // An estimate only moves blocks between stacks. So the sum of all stacks is exact if no block is sampled.
        amount.estimated = analysis.estimated;
        let records = (0..growth.records.len() as u32).collect();
        let is_peak = analysis.invocations.iter().any(|invocation| invocation.at == DumpTime::Peak);
        let name = growth.names.add(if is_peak { ALL_AT_PEAK } else { ALL });
        growth.nodes.push(GrownNode { name, caller: 0, amount, depth: 0, records, shown: true });
        growth
    }

    fn grow(mut self, most: usize) -> FlameGraph {
        let mut waiting: BinaryHeap<(i128, Reverse<usize>)> = BinaryHeap::new();
        let mut called = self.call(0);
        let mut shown = 0;
        loop {
            waiting.extend(called.map(|node| (self.nodes[node].amount.sums.usable(), Reverse(node))));
            if shown == most {
                break;
            }
            let Some((_, Reverse(node))) = waiting.pop() else { break };
            shown += 1;
            self.nodes[node].shown = true;
            called = self.call(node);
        }
        self.finish()
    }

    /// Makes the frames below `caller`.
    fn call(&mut self, caller: usize) -> Range<usize> {
        let first = self.nodes.len();
        let depth = self.nodes[caller].depth;
        let records = core::mem::take(&mut self.nodes[caller].records);
        self.names.forget();
        for index in records {
            let (section, record) = self.records[index as usize];
            let Some(name) = self.names.at(self.analysis, section, record, depth) else { continue };
            let next = self.nodes.len() as u32;
            let node = self.names.place(name, next);
            if node == next {
                let (caller, amount) = (caller as u32, FlameAmount::default());
                let depth = depth + 1;
                self.nodes.push(GrownNode { name, caller, amount, depth, records: Vec::new(), shown: false });
            }
            let node = &mut self.nodes[node as usize];
            node.records.push(index);
            node.amount.add(FlameAmount { sums: record.sums, estimated: record.estimated });
            if caller == 0 && self.analysis.sections.len() > 1 {
                node.amount.estimated = section.estimated;
            }
        }
        first..self.nodes.len()
    }

    fn finish(mut self) -> FlameGraph {
        let small = self.names.add(SMALL);
        let Self { names, nodes, .. } = self;
        // The shown children of each frame, in order. `rest` has the sums of the other children.
        let mut called: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        let mut rest: Vec<Option<FlameAmount>> = vec![None; nodes.len()];
        for (index, node) in nodes.iter().enumerate().skip(1) {
            if node.shown {
                called[node.caller as usize].push(index as u32);
            } else {
                rest[node.caller as usize].get_or_insert_default().add(node.amount);
            }
        }
        let mut frames = Vec::new();
        let mut open = vec![0_u32];
        while let Some(at) = open.pop() {
            let node = &nodes[at as usize];
            let children = &mut called[at as usize];
            // The stack pops the last child first, so the largest child goes last.
            children.sort_by_cached_key(|child| {
                let GrownNode { name, amount, .. } = &nodes[*child as usize];
                (amount.sums.usable(), Reverse(names.names.get(*name)))
            });
            let rest = rest[at as usize];
            let count = children.len() + usize::from(rest.is_some());
            frames.push(FlameNode { name: node.name, children: count as u32, amount: node.amount });
            if let Some(amount) = rest {
                // `(small)` has no frames below it, so it can precede its siblings.
                frames.push(FlameNode { name: small, children: 0, amount });
            }
            open.extend(children.iter());
        }
        FlameGraph { names: names.names, frames, faults: self.analysis.faults.clone() }
    }
}

/// Names of frames, each stored once.
#[derive(Default)]
struct FlameNames {
    names: TextPool,
    /// The name's number for each frame; `None` before the first use.
    of_frames: Vec<Option<u32>>,
    of_reporters: HashMap<CutStackId, u32>,
    of_kinds: HashMap<RecordKind, u32>,
    /// For each name: the turn in which it last got a number, and the number. A number is valid only in its turn.
    places: Vec<(u32, u32)>,
    turn: u32,
}

impl FlameNames {
    fn add(&mut self, name: &str) -> u32 {
        let number = self.names.intern(name).expect("a dump has fewer than 2^32 names");
        self.places.resize(self.names.len(), (0, 0));
        number
    }

    /// The number of the name of a record's frame at `depth`, counted from the outermost.
    fn at(
        &mut self,
        analysis: &Analysis,
        section: &KindSection,
        record: &StackRecord,
        depth: usize,
    ) -> Option<u32> {
        let mut depth = depth;
        if analysis.sections.len() > 1 {
            if depth == 0 {
                if let Some(known) = self.of_kinds.get(&section.kind) {
                    return Some(*known);
                }
                let name = self.add(&kind_name(section));
                self.of_kinds.insert(section.kind, name);
                return Some(name);
            }
            depth -= 1;
        }
        if record.reps[0] != CutStackId::NONE {
            if depth == 0 {
                if let Some(known) = self.of_reporters.get(&record.reps[0]) {
                    return Some(*known);
                }
                let name = self.add(&reporter_name(analysis, record));
                self.of_reporters.insert(record.reps[0], name);
                return Some(name);
            }
            depth -= 1;
        }
        let frames = analysis.stacks.get(record.alloc);
        let frame = *frames.get(frames.len().checked_sub(depth + 1)?)?;
        if self.of_frames.is_empty() {
            self.of_frames = vec![None; analysis.texts.len()];
        }
        if let Some(known) = self.of_frames[frame.index()] {
            return Some(known);
        }
        let name = self.add(analysis.texts.get(frame).short_name());
        self.of_frames[frame.index()] = Some(name);
        Some(name)
    }

    /// Drops the numbers of all names, by starting a new turn.
    fn forget(&mut self) {
        self.turn += 1;
    }

    /// The number of a name. A name without a number gets `next`.
    fn place(&mut self, name: u32, next: u32) -> u32 {
        let place = &mut self.places[name as usize];
        if place.0 != self.turn {
            *place = (self.turn, next);
        }
        place.1
    }
}
