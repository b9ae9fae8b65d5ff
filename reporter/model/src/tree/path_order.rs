//! Sorts paths so that the paths of every sub-tree are adjacent: by bytes, but with `/` before every other byte.
//!
//! Each step compares eight bytes as one integer. Only the paths with equal integers are compared further. The work
//! is bounded by the bytes of all paths, even with long common prefixes.

const CHUNK: usize = 8;

/// The indices of `paths` in path order; equal paths keep their order.
pub(super) fn path_order(paths: &[&str]) -> Vec<u32> {
    let count = u32::try_from(paths.len()).expect("a set has fewer than 2^32 reports");
    let mut entries: Vec<(u64, u32)> = (0..count).map(|i| (0, i)).collect();
    let mut runs = vec![(0, entries.len(), 0)];
    while let Some((start, end, depth)) = runs.pop() {
        let run = &mut entries[start..end];
        for (key, index) in run.iter_mut() {
            *key = chunk(paths[*index as usize].as_bytes(), depth);
        }
        run.sort_unstable();
        let mut at = start;
        for same in run.chunk_by(|a, b| a.0 == b.0) {
            let ended = same[0].0 & 0xff == 0;
            if same.len() > 1 && !ended {
                runs.push((at, at + same.len(), depth + CHUNK));
            }
            at += same.len();
        }
    }
    entries.into_iter().map(|(_, index)| index).collect()
}

/// The ranks of eight bytes from `depth` as a big-endian number. The rank is 0 beyond the end, 1 for `/`, and the byte
/// plus 2 for other bytes. Ranks do not overflow, since no byte of UTF-8 exceeds 0xf4.
fn chunk(path: &[u8], depth: usize) -> u64 {
    let rest = &path[depth..];
    let rank = |byte: u8| if byte == b'/' { 1 } else { byte.saturating_add(2) };
    if let Some(full) = rest.first_chunk::<CHUNK>() {
        u64::from_be_bytes(full.map(rank))
    } else {
        let mut ranks = [0; CHUNK];
        for (to, &byte) in ranks.iter_mut().zip(rest) {
            *to = rank(byte);
        }
        u64::from_be_bytes(ranks)
    }
}
