//! Groups elements in linear time.

/// The indices below `count`, sorted by group; each group keeps its order. Also returns the end of each group.
pub(crate) fn grouped(
    count: usize,
    groups: usize,
    group_of: impl Fn(usize) -> usize,
) -> (Vec<usize>, Vec<u32>) {
    let mut ends = vec![0; groups];
    (0..count).for_each(|index| ends[group_of(index)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        // At first this is the start of the group. Each added element moves it towards the end.
        sum += core::mem::replace(end, sum);
    }
    let mut order = vec![0; count];
    for index in 0..count {
        let place = &mut ends[group_of(index)];
        order[*place] = index as u32;
        *place += 1;
    }
    (ends, order)
}
