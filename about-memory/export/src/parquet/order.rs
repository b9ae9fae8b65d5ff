//! Sorts many texts with long common prefixes, such as paths.

/// Below this number of texts, whole texts are compared.
const FEW: usize = 24;

#[derive(Clone, Copy)]
struct RowKey {
    /// The next eight bytes of the text as a big-endian number.
    word: u64,
    row: u32,
}

/// Sorts rows by `text`, bytewise, and rows with equal texts by `then`. Each pass compares eight bytes of each text.
pub(super) fn sort_by_text<'t, K: Ord>(
    rows: &mut [u32],
    text: impl Fn(u32) -> &'t str,
    then: impl Fn(u32) -> K,
) {
    let mut keys: Vec<RowKey> =
        rows.iter().map(|row| RowKey { word: word(text(*row), 0), row: *row }).collect();
    // The start, the end and the byte offset of the ranges that are not sorted yet.
    let mut open = vec![(0, keys.len(), 0)];
    while let Some((start, end, from)) = open.pop() {
        let keys = &mut keys[start..end];
        let compare = |a: &RowKey, b: &RowKey| {
            let rest = |key: &RowKey| text(key.row).as_bytes().get(from..).unwrap_or_default();
            (a.word.cmp(&b.word))
                .then_with(|| rest(a).cmp(rest(b)))
                .then_with(|| then(a.row).cmp(&then(b.row)))
        };
        if keys.len() < FEW {
            keys.sort_unstable_by(compare);
            continue;
        }
        if !keys.is_sorted_by_key(|key| key.word) {
            keys.sort_unstable_by_key(|key| key.word);
        }
        let next = from + 8;
        let mut at = 0;
        for equal in keys.chunk_by_mut(|a, b| a.word == b.word) {
            let begin = at;
            at += equal.len();
            if equal.len() == 1 {
                continue;
            }
            if equal.len() < FEW || !equal.iter().any(|key| text(key.row).len() > next) {
                equal.sort_unstable_by(compare);
                continue;
            }
            equal.iter_mut().for_each(|key| key.word = word(text(key.row), next));
            // A text that ends here comes before a text that continues with a zero byte.
            if equal.iter().any(|key| text(key.row).len() <= next) {
                equal.sort_unstable_by_key(|key| text(key.row).len() > next);
                let ended = equal.partition_point(|key| text(key.row).len() <= next);
                equal[..ended].sort_unstable_by(compare);
                open.push((start + begin + ended, start + at, next));
            } else {
                open.push((start + begin, start + at, next));
            }
        }
    }
    rows.iter_mut().zip(keys).for_each(|(row, key)| *row = key.row);
}

fn word(text: &str, from: usize) -> u64 {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    let mut bytes = [0; 8];
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(bytes)
}
