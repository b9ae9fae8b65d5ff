//! Selects the groups to show: filters the groups, sorts them, and applies the limit.

use core::cmp::Reverse;

use super::groups::{NOWHERE, StackGroup, StackGroups};
use super::options::RecordOrder;
use super::{BlockSums, RecordKind};

/// The groups that are shown.
pub(super) struct ShownGroups {
    /// For each group, its index among the shown groups, or [`NOWHERE`].
    pub(super) place: Vec<u32>,
    /// The number of shown groups.
    pub(super) len: usize,
    pub(super) of_kind: Vec<OfKind>,
}

/// The groups of a kind.
pub(super) struct OfKind {
    pub(super) kind: RecordKind,
    /// The number of groups before the filters and the limit are applied.
    pub(super) all: usize,
    /// The groups that pass the filters.
    pub(super) kept: Vec<u32>,
    /// The groups to show, sorted, up to the limit.
    pub(super) shown: Vec<u32>,
}

impl ShownGroups {
    /// Leaves out the groups marked in `unchanged`. The list `unchanged` may be shorter than the list of groups.
    pub(super) fn new(groups: &StackGroups<'_>, unchanged: &[bool]) -> Self {
        let mut of_kind: Vec<Vec<u32>> = groups.kinds.iter().map(|_| Vec::new()).collect();
        for (index, group) in groups.all.iter().enumerate() {
            let kind = groups.kind(group);
            if !unchanged.get(index).copied().unwrap_or(false)
                && let Some(at) = groups.kinds.iter().position(|known| *known == kind)
            {
                of_kind[at].push(index as u32);
            }
        }
        let mut place = vec![NOWHERE; groups.all.len()];
        let mut len = 0;
        let kinds = groups.kinds.iter().zip(of_kind).map(|(kind, mut kept)| {
            let all = kept.len();
            kept.retain(|group| keeps(groups, groups.get(*group)));
            let shown = sorted(groups, kept.clone());
            for group in &shown {
                place[*group as usize] = len as u32;
                len += 1;
            }
            OfKind { kind: *kind, all, kept, shown }
        });
        let of_kind = kinds.collect();
        Self { place, len, of_kind }
    }
}

impl OfKind {
    /// The sums of all groups that pass the filters, and whether the sums are an estimate.
    pub(super) fn sums(&self, groups: &StackGroups<'_>) -> (BlockSums, bool) {
        let options = groups.options;
        let is_filtered = !(options.filters.is_empty() && options.report_filters.is_empty());
        let mut sums = BlockSums::default();
        let mut estimated = false;
        for group in self.kept.iter().map(|group| groups.get(*group)) {
            sums.add(group.sums);
            // An estimate moves blocks only between records of the same kind.
            estimated |= if is_filtered { group.estimated } else { group.sampled };
        }
        (sums, estimated)
    }
}

/// Whether a group passes all filters.
fn keeps(groups: &StackGroups<'_>, group: &StackGroup) -> bool {
    let lines = |stack| {
        let frames = groups.stacks.get(groups.shown(stack)).iter();
        frames.enumerate().map(|(index, text)| (index + 1, groups.texts.get(*text)))
    };
    let [first, second] = group.reps;
    let reports = || lines(first).chain(lines(second));
    groups.options.filters.iter().all(|filter| filter.keeps(lines(group.alloc)))
        && groups.options.report_filters.iter().all(|filter| filter.keeps(reports()))
}

/// Sorts the groups, and drops the groups beyond the limit.
fn sorted(groups: &StackGroups<'_>, mut list: Vec<u32>) -> Vec<u32> {
    let by = |group: &u32| {
        let sums = &groups.get(*group).sums;
        let (num, usable) = (sums.num.abs(), sums.usable().abs());
        let amounts = match groups.options.sort_by {
            RecordOrder::Usable if groups.options.resident => [usable, sums.req.abs(), sums.resident().abs()],
            RecordOrder::Usable => [usable, sums.req.abs(), 0],
            RecordOrder::Req => [sums.req.abs(), 0, 0],
            RecordOrder::Slop => [sums.slop.abs(), 0, 0],
            RecordOrder::NumBlocks => [num, usable, sums.req.abs()],
            RecordOrder::Resident => [sums.resident().abs(), usable, 0],
            RecordOrder::Swapped => [sums.swapped.abs(), usable, 0],
            RecordOrder::Untouched => [sums.untouched.abs(), usable, 0],
        };
        // Groups with equal amounts keep the order of their first block, for every sort key.
        (Reverse(amounts), *group)
    };
    let limit = groups.options.limit;
    if limit == 0 {
        list.clear();
    } else if list.len() > limit {
        list.select_nth_unstable_by_key(limit - 1, by);
        list.truncate(limit);
    }
    list.sort_unstable_by_key(by);
    list
}
