//! Groups a history by site, type and thread. Each of the groups with the most memory gets a line of its own.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::UsageRow;
use crate::program::holder::{BlockHolder, HolderFinder, HolderKey};
use crate::recording::{LineGroups, StackUse, UsageLine};
use crate::records::CutStackId;

/// The maximum number of lines of one kind. Further holders share a line.
const MOST: usize = 1000;

/// The holders of each stack that allocated.
pub(super) struct StackHolders {
    /// For each stack of the recording: the index in `all` of its holders, one for each key.
    holders: FxHashMap<u32, usize>,
    all: Vec<Vec<(BlockHolder, String)>>,
    stacks: Vec<(u32, u64)>,
    keys: usize,
}

impl StackHolders {
    /// Finds the holders of all stacks. `of_blocks` contains the analysis's stack for each of `stacks`.
    pub(super) fn new(
        holders: &HolderFinder<'_>,
        stacks: &[StackUse],
        of_blocks: &[CutStackId],
        keys: &[HolderKey],
    ) -> Self {
        let mut all = Vec::new();
        let mut known: FxHashMap<CutStackId, usize> = FxHashMap::default();
        let of_stacks = stacks.iter().zip(of_blocks).map(|(usage, stack)| {
            let at = *known.entry(*stack).or_insert_with(|| {
                all.push(holders.find_for_stack(*stack, keys));
                all.len() - 1
            });
            (usage.stack, at)
        });
        let holders = of_stacks.collect();
        let stacks = stacks.iter().map(|usage| (usage.stack, usage.highest)).collect();
        Self { holders, all, stacks, keys: keys.len() }
    }

    /// The holder of a stack under a key, and its place.
    pub(super) fn holder(&self, stack: u32, key: usize) -> (BlockHolder, String) {
        let held = self.holders.get(&stack).and_then(|at| self.all[*at].get(key));
        held.cloned().unwrap_or_else(|| (BlockHolder::plain("(no stack)"), String::new()))
    }
}

/// The blocks that a line shows.
enum LineSubject {
    Total,
    Holder(usize, BlockHolder, String),
    Thread(String),
    /// The blocks of all further holders, or the blocks that are older than the recording.
    Rest(usize, &'static str),
}

/// The groups of a recording, with the subject of each.
pub(super) struct UsageGroups {
    pub(super) groups: LineGroups,
    meanings: Vec<LineSubject>,
}

impl UsageGroups {
    /// Groups the stacks and the threads. `stacks_end` is one more than the highest number of a stack.
    pub(super) fn new(held: &StackHolders, threads: &[String], stacks_end: usize) -> Self {
        let ways = held.keys;
        let mut meanings = vec![LineSubject::Total];
        let mut of_stack = vec![0; stacks_end.max(1) * ways];
        for way in 0..ways {
            let mut bounds: BTreeMap<BlockHolder, (u128, u64, String)> = BTreeMap::new();
            for (stack, highest) in &held.stacks {
                let (holder, place) = held.holder(*stack, way);
                let (sum, most, shown) = bounds.entry(holder).or_default();
                *sum += u128::from(*highest);
                // The group gets the place of its stack with the most memory.
                if *highest >= *most {
                    (*most, *shown) = (*highest, place);
                }
            }
            let mut sorted: Vec<_> = bounds.into_iter().collect();
            sorted.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
            let rest = meanings.len() as u32;
            meanings.push(LineSubject::Rest(way, "(others)"));
            let mut numbers: FxHashMap<BlockHolder, u32> = FxHashMap::default();
            for (holder, (_, _, place)) in sorted.into_iter().take(MOST) {
                numbers.insert(holder.clone(), meanings.len() as u32);
                meanings.push(LineSubject::Holder(way, holder, place));
            }
            of_stack.iter_mut().skip(way).step_by(ways).for_each(|group| *group = rest);
            for (stack, _) in &held.stacks {
                let group = numbers.get(&held.holder(*stack, way).0).copied().unwrap_or(rest);
                if let Some(place) = of_stack.get_mut(*stack as usize * ways + way) {
                    *place = group;
                }
            }
        }
        let rest = meanings.len() as u32;
        meanings.push(LineSubject::Rest(ways, "(others)"));
        let of_older = meanings.len() as u32;
        meanings.push(LineSubject::Rest(ways, "(before the recording)"));
        let mut of_thread = vec![rest; threads.len()];
        for (thread, name) in threads.iter().enumerate().take(MOST) {
            of_thread[thread] = meanings.len() as u32;
            meanings.push(LineSubject::Thread(name.clone()));
        }
        let groups = LineGroups { of_stack, of_thread, of_older, ways, count: meanings.len() };
        Self { groups, meanings }
    }

    /// The line of the whole heap, and the lines of sites, types and threads. Each list is sorted descending by the
    /// highest live bytes.
    pub(super) fn rows(self, lines: Vec<UsageLine>) -> (UsageLine, [Vec<UsageRow>; 3]) {
        let mut total = None;
        let mut rows = [const { Vec::new() }; 3];
        for (meaning, line) in self.meanings.into_iter().zip(lines) {
            let is_empty = line.allocations == 0 && line.highest == 0;
            let (way, holder, place) = match meaning {
                LineSubject::Total => {
                    total = Some(line);
                    continue;
                }
                _ if is_empty => continue,
                LineSubject::Holder(way, holder, place) => (way, holder, place),
                LineSubject::Thread(name) => (2, BlockHolder::plain(name), String::new()),
                LineSubject::Rest(way, name) => (way, BlockHolder::plain(name), String::new()),
            };
            if let Some(rows) = rows.get_mut(way) {
                rows.push(UsageRow { holder, place, line });
            }
        }
        for rows in &mut rows {
            rows.sort_by(|a, b| b.line.highest.cmp(&a.line.highest).then_with(|| a.holder.cmp(&b.holder)));
        }
        (total.unwrap_or_else(|| UsageLine::new(1)), rows)
    }
}
