//! The sizes and addresses of the blocks of selected groups. `place` contains the index of each selected group.

use core::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::BlockSums;
use super::groups::{NOWHERE, StackGroup, StackGroups};

/// For each selected group, pairs of a usable size and its count, sorted descending. A size is negative if the second
/// dump of a difference has fewer blocks of this size.
pub(super) fn sizes(groups: &StackGroups<'_>, place: &[u32], places: usize) -> Vec<Vec<(i128, i128)>> {
    // The flags of a count: whether the first dump contains the size, and whether the last dump does.
    let mut counts: Vec<FxHashMap<i128, (i128, [bool; 2])>> = vec![FxHashMap::default(); places];
    for dump in &groups.dumps {
        groups.count(dump, |block, counted| {
            // Skip blocks that an estimate has moved to other records.
            let taken = counted.estimated && counted.sums.is_empty();
            if let Some(counts) = counts.get_mut(place[counted.group as usize] as usize)
                && !taken
            {
                let (count, of) = counts.entry(block.usable()).or_default();
                *count += dump.sign * BlockSums::from_block(block).num;
                of[usize::from(dump.sign > 0)] = true;
            }
        });
    }
    let sorted = |counts: FxHashMap<i128, (i128, [bool; 2])>| {
        let mut sizes: Vec<(i128, i128)> = counts
            .into_iter()
            // In a difference, leave out a size with equal counts in both dumps. An entry that represents 0 blocks
            // keeps its size.
            .filter(|(_, (count, of))| !groups.is_difference() || *count != 0 || *of != [true; 2])
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

/// The addresses of the blocks of each selected group, in scan mode.
pub(super) fn addresses(groups: &StackGroups<'_>, place: &[u32], places: usize) -> Vec<Vec<u64>> {
    let mut addresses = vec![Vec::new(); places];
    let mut known = vec![false; places];
    // In a difference, a record gets the addresses from the second dump. A record that only the first dump has gets the
    // addresses from the first dump.
    for dump in groups.dumps.iter().rev() {
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

/// For each group, whether it is left out. A difference leaves out groups that did not change. If the options ask for
/// resident bytes, groups with changed resident bytes stay. An estimate leaves out groups whose blocks all moved to
/// other groups. Empty without a difference and an estimate.
pub(super) fn unchanged(groups: &StackGroups<'_>) -> Vec<bool> {
    let is_estimate = groups.options.estimate;
    if !groups.is_difference() && !is_estimate {
        return Vec::new();
    }
    let has_pages = |group: &StackGroup| (group.sums.swapped, group.sums.untouched) != (0, 0);
    let is_empty =
        |group: &StackGroup| group.sums.is_empty() && !(groups.options.resident && has_pages(group));
    if !groups.is_difference() {
        return groups.all.iter().map(is_empty).collect();
    }
    let mut place = vec![NOWHERE; groups.all.len()];
    let mut places = 0;
    for (place, _) in place.iter_mut().zip(&groups.all).filter(|(_, group)| is_empty(group)) {
        *place = places;
        places += 1;
    }
    let sizes = sizes(groups, &place, places as usize);
    let has_no_sizes =
        |place: &u32| sizes.get(*place as usize).is_some_and(|sizes| is_estimate || sizes.is_empty());
    place.iter().map(has_no_sizes).collect()
}
