//! A stable sort that adds little code to the program. The compiler compiles the sort of std again for each type of
//! element, and each copy takes five kilobytes.
//!
//! Here, the part for each type only compares and swaps, by calls that are not inlined. So this sort is slower than the
//! sort of std. This does not matter for lists that a person reads.

use core::cmp::Ordering;

/// Sorts the items. Equal items keep their order.
pub(crate) fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut places = places(items.len(), &mut |a, b| compare(&items[a], &items[b]));
    for at in 0..places.len() {
        // Each swap puts one item into its place.
        while places[at] != at {
            let place = places[at];
            items.swap(at, place);
            places.swap(at, place);
        }
    }
}

/// The place of each item in the sorted list. Merges sorted runs; each pass doubles their length.
fn places(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut merged: Vec<usize> = Vec::with_capacity(len);
    let mut width = 1;
    while width < len {
        merged.clear();
        for run in order.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            while let ([a, more_left @ ..], [b, more_right @ ..]) = (left, right) {
                // If two items are equal, the left one is first.
                if compare(*b, *a) == Ordering::Less {
                    merged.push(*b);
                    right = more_right;
                } else {
                    merged.push(*a);
                    left = more_left;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        core::mem::swap(&mut order, &mut merged);
        width *= 2;
    }
    merged.resize(len, 0);
    for (place, item) in order.into_iter().enumerate() {
        merged[item] = place;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_as_std_does_and_keeps_the_order_of_equal_items() {
        let mut state = 1_u32;
        for len in (0..40).chain([100, 1000, 1023, 1024, 1025]) {
            let mut items: Vec<(u32, usize)> = (0..len)
                .map(|place| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    ((state >> 16) % (len as u32 / 3 + 1), place)
                })
                .collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by(&mut items, |a, b| a.0.cmp(&b.0));
            assert_eq!(items, expected);
        }
    }
}
