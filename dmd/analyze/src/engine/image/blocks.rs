//! Reads the live blocks from the table of blocks.

use std::collections::BTreeMap;

use dmd_format::tables::word::{
    FREED, KEY, KEY_BITS, KEY_SHIFT, LIVE, REQUESTED_SHIFT, SIZE, SIZE_SHIFT, SLOP, SLOP_BITS, SLOP_SHIFT,
    STACK_BITS, STACK_SHIFT, TAG, WIDE, fingerprint,
};
use dmd_format::tables::{ADDRESS_BITS, CELLS, GRAIN_BITS, LEAF_BITS, LINE_BITS, MIDDLE_BITS, SLOTS};

use super::header::TableHeader;
use super::memory::{ImageMemory, damaged, u64_at, words};
use crate::error::AnalyzeError;
use crate::recording::tree::EqualBlocks;

const ROOTS: usize = 1 << (ADDRESS_BITS - MIDDLE_BITS);
const LEAVES: usize = 1 << (MIDDLE_BITS - LEAF_BITS);
const LINE: usize = 8 * (CELLS + 1);
const LEAF: usize = LINE << (LEAF_BITS - LINE_BITS);
const KEYS: usize = 1 << KEY_BITS;
const CHUNK: usize = 2 * SLOTS + 8 + 24 * SLOTS;

/// The maximum number of lines or chunks in a chain. Longer chains are damaged.
const LONGEST_CHAIN: usize = 64;

/// All live blocks with their addresses.
pub(super) fn all(
    memory: &ImageMemory<'_>,
    header: &TableHeader,
    max_entries: usize,
) -> Result<Vec<(u64, EqualBlocks)>, AnalyzeError> {
    let mut blocks = Vec::new();
    for (plane, root) in header.roots.iter().enumerate().filter(|(_, root)| **root != 0) {
        for (high, middle) in memory.words(*root, ROOTS)?.into_iter().enumerate() {
            if middle == 0 {
                continue;
            }
            let both = memory.words(middle, 2 * LEAVES)?;
            let (leaves, chunks) = both.split_at(LEAVES);
            for (low, (leaf, chunk)) in leaves.iter().zip(chunks).enumerate() {
                let start = ((high as u64) << MIDDLE_BITS) + ((low as u64) << LEAF_BITS) + plane as u64;
                stretch(memory, start, *leaf, *chunk, &mut blocks)?;
                if blocks.len() > max_entries {
                    return Err(AnalyzeError::TooManyEntries(max_entries));
                }
            }
        }
    }
    Ok(blocks)
}

/// The blocks in the part of the heap that a leaf describes.
fn stretch(
    memory: &ImageMemory<'_>,
    start: u64,
    leaf: u64,
    chunk: u64,
    blocks: &mut Vec<(u64, EqualBlocks)>,
) -> Result<(), AnalyzeError> {
    let mut slots = slots(memory, chunk)?;
    if leaf != 0 {
        let mut lines = vec![0; LEAF];
        memory.fill(leaf, &mut lines)?;
        for (number, line) in lines.chunks_exact(LINE).enumerate() {
            let cells = chain(memory, line)?;
            for word in &cells {
                let place = (word & KEY) >> KEY_SHIFT;
                let index = (number * KEYS) as u64 + place;
                if word & TAG == LIVE {
                    let address = start + (index << GRAIN_BITS);
                    blocks.extend(block(*word, || sizes(&cells, word & KEY)).map(|kind| (address, kind)));
                }
                if word & TAG == LIVE || *word == FREED | (word & KEY) {
                    slots.remove(&index);
                }
            }
        }
    }
    for (index, [word, requested, slop]) in slots {
        if word & TAG == LIVE {
            let kind = block(word, || Some((requested, slop)));
            blocks.extend(kind.map(|kind| (start + (index << GRAIN_BITS), kind)));
        }
    }
    Ok(())
}

/// The words of a line and of the lines linked from it.
fn chain(memory: &ImageMemory<'_>, first: &[u8]) -> Result<Vec<u64>, AnalyzeError> {
    let mut cells: Vec<u64> = words(first).collect();
    for _ in 0..LONGEST_CHAIN {
        match cells.pop() {
            None | Some(0) => return Ok(cells),
            Some(next) => cells.extend(memory.words(next, CELLS + 1)?),
        }
    }
    Err(damaged("a chain of lines is too long"))
}

/// The slots of a chain of chunks, by the number of the block's grain in the leaf's part of the heap. A slot contains
/// the word, the requested bytes and the slop.
fn slots(memory: &ImageMemory<'_>, mut chunk: u64) -> Result<BTreeMap<u64, [u64; 3]>, AnalyzeError> {
    let mut slots = BTreeMap::new();
    let mut bytes = [0; CHUNK];
    for _ in 0..LONGEST_CHAIN {
        if chunk == 0 {
            return Ok(slots);
        }
        memory.fill(chunk, &mut bytes)?;
        for slot in 0..SLOTS {
            let number = u64_at(&bytes, 2 * slot) as u16;
            let Some(index) = number.checked_sub(1) else { continue };
            let at = 2 * SLOTS + 8 + 24 * slot;
            slots.insert(index.into(), [0, 8, 16].map(|word| u64_at(&bytes, at + word)));
        }
        chunk = u64_at(&bytes, 2 * SLOTS);
    }
    Err(damaged("a chain of chunks is too long"))
}

/// The block of a word; `None` if a thread was recording the block at that moment.
fn block(word: u64, sizes: impl FnOnce() -> Option<(u64, u64)>) -> Option<EqualBlocks> {
    let bits = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    let (requested, slop) = if word & WIDE == 0 {
        (word >> REQUESTED_SHIFT, bits(SLOP_SHIFT, SLOP_BITS))
    } else {
        sizes().filter(|(requested, slop)| fingerprint(*requested, *slop) == word >> SLOP_SHIFT)?
    };
    Some(EqualBlocks { stack: bits(STACK_SHIFT, STACK_BITS) as u32, requested, slop })
}

/// The sizes of the wide block with this key.
fn sizes(cells: &[u64], key: u64) -> Option<(u64, u64)> {
    let size = |which| {
        let word = cells.iter().find(|word| **word & (TAG | KEY | SLOP) == SIZE | key | which)?;
        Some(word >> SIZE_SHIFT)
    };
    Some((size(0)?, size(SLOP)?))
}
