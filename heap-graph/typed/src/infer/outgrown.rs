//! Buffers in the chunks of arenas that vectors have outgrown. An arena does not free a vector's smaller buffer when the
//! vector gets a larger one.
//!
//! No pointer leads to such a buffer. But its elements are the first elements of the larger buffer, so the same bytes
//! are in both. This search compares the bytes between known values with the first elements of known slices. An
//! element counts only if it contains a pointer to a block: other bytes may be equal by chance.

use hashbrown::HashMap;

use super::Inference;
use crate::walk::TypedContents;

/// The size of the largest element that is compared, in bytes.
const LARGEST_ELEMENT: u64 = 1 << 10;

/// The maximum number of slices with the same first bytes that are stored.
const MOST_SLICES: usize = 4;

/// The size of the largest range between values that is searched, in bytes.
const LARGEST_RANGE: u64 = 1 << 24;

/// The maximum number of compared bytes for each byte of the searched ranges. If more bytes must be compared, the rest of
/// the ranges has no type.
const COMPARED_AT_MOST: u64 = 16;

/// The number of bytes for which the smallest comparison counts.
const LEAST_COMPARED: u64 = 32;

const WORD: u64 = 8;

/// The first bytes of a slice. The second word of a smaller element is 0.
type FirstWords = (u64, u64);

/// A slice in a chunk with at least two elements.
#[derive(Clone, Copy)]
struct ValueSlice {
    start: u64,
    bytes: u64,
    /// The size of an element.
    each: u64,
    contents: TypedContents,
}

impl Inference<'_, '_, '_> {
    /// Finds outgrown buffers in the used parts of chunks.
    pub(super) fn find_outgrown(&mut self) {
        let slices = self.slices_by_first_words();
        if slices.is_empty() {
            return;
        }
        let mut ranges = self.ranges_without_values();
        ranges.iter_mut().for_each(|(start, end)| *end = (*end).min(start.saturating_add(LARGEST_RANGE)));
        let bytes = ranges.iter().fold(0, |sum: u64, (start, end)| sum.saturating_add(end - start));
        let mut budget = bytes.saturating_mul(COMPARED_AT_MOST);
        for range in ranges {
            self.search_outgrown(range, &slices, &mut budget);
        }
    }

    fn slices_by_first_words(&mut self) -> HashMap<FirstWords, Vec<ValueSlice>> {
        let mut slices: HashMap<FirstWords, Vec<ValueSlice>> = HashMap::new();
        let info = self.heap.walk.info();
        for (start, contents, bytes) in self.heap.values.all() {
            let TypedContents::Slice { element, .. } = contents else { continue };
            let each = info.size(element);
            if !each.is_multiple_of(WORD) || !(WORD..=LARGEST_ELEMENT).contains(&each) || bytes < 2 * each {
                continue;
            }
            let element = self.reader.read(start, each);
            let Some(first) = first_words(element, each) else { continue };
            let leads_to_block = |word: &[u8; 8]| {
                let word = u64::from_le_bytes(*word);
                self.heap.index.find(&self.heap.blocks, word).is_some()
            };
            if element.as_chunks().0.iter().any(leads_to_block) {
                let known = slices.entry(first).or_default();
                if known.len() < MOST_SLICES {
                    known.push(ValueSlice { start, bytes, each, contents });
                }
            }
        }
        slices
    }

    /// The ranges between values in the used parts of chunks.
    fn ranges_without_values(&self) -> Vec<(u64, u64)> {
        let values = self.heap.values.ranges();
        let mut without = Vec::new();
        let mut chunks: Vec<_> =
            self.heap.chunk_uses.values().filter_map(|chunk| chunk.used_range()).collect();
        chunks.sort_unstable();
        for (mut start, end) in chunks {
            let first = values.partition_point(|(_, value_end)| *value_end <= start);
            for (value, value_end) in values[first..].iter().take_while(|(value, _)| *value < end) {
                if start < *value {
                    without.push((start, *value));
                }
                start = start.max(*value_end);
            }
            if start < end {
                without.push((start, end));
            }
        }
        without
    }

    /// Searches a range for outgrown buffers. A single element is a buffer only if it fills the rest of the range.
    fn search_outgrown(
        &mut self,
        (start, end): (u64, u64),
        slices: &HashMap<FirstWords, Vec<ValueSlice>>,
        budget: &mut u64,
    ) {
        let range = self.reader.read(start, end - start).to_vec();
        let mut at = (start.next_multiple_of(WORD) - start) as usize;
        // Whether a value or a buffer ends here.
        let mut is_border = true;
        while let Some(rest) = range.get(at..).filter(|rest| rest.len() >= WORD as usize) {
            if *budget == 0 {
                break;
            }
            let two = first_words(rest, 2 * WORD).and_then(|first| slices.get(&first));
            let one = || first_words(rest, WORD).and_then(|first| slices.get(&first));
            let best = two.or_else(one).into_iter().flatten().filter_map(|slice| {
                let equal = self.equal_elements(slice, rest, budget);
                let is_whole = is_border && equal * slice.each == rest.len() as u64;
                (equal > 1 || is_whole && equal > 0).then_some((equal * slice.each, slice))
            });
            let Some((bytes, slice)) = best.max_by_key(|(bytes, _)| *bytes) else {
                (at, is_border) = (at + WORD as usize, false);
                continue;
            };
            self.heap.values.add_outgrown(start + at as u64, slice.contents, bytes);
            (at, is_border) = (at + bytes as usize, true);
        }
    }

    /// The number of elements at the start of a slice that are equal to the elements at the start of `bytes`; 0 if the
    /// budget is too small.
    fn equal_elements(&mut self, slice: &ValueSlice, bytes: &[u8], budget: &mut u64) -> u64 {
        let most = slice.bytes.min(bytes.len() as u64) / slice.each;
        // Most candidates differ in the first elements, so each step reads twice as many elements as the step before.
        let (mut equal, mut step) = (0, 1);
        while equal < most {
            let count = (most - equal).min(step);
            let (from, size) = (equal * slice.each, count * slice.each);
            *budget = budget.saturating_sub(size.max(LEAST_COMPARED));
            if *budget == 0 {
                return 0;
            }
            let known = self.reader.read(slice.start + from, size).chunks_exact(slice.each as usize);
            let others = bytes[from as usize..].chunks_exact(slice.each as usize);
            let same = known.zip(others).take_while(|(one, other)| one == other).count() as u64;
            equal += same;
            if same < count {
                break;
            }
            step *= 2;
        }
        equal
    }
}

/// The first two words of an element, or its only word.
fn first_words(element: &[u8], each: u64) -> Option<FirstWords> {
    let words = element.as_chunks().0;
    let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
    Some((word(0)?, if each > WORD { word(1)? } else { 0 }))
}
