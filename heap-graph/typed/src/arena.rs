//! Chunks of arenas: values, an unused rest before them, and a footer at the end.
//!
//! An arena hands out its chunks from the end to the start. The footer has the address of the chunk, and the address up to
//! which the arena handed the chunk out; of the chunk in use, the arena itself may have the latter in place of the footer.

use std::collections::BTreeMap;
use std::mem::size_of;

use hashbrown::HashMap;

use crate::blocks::HeapBlock;
use crate::infer::TypedHeap;
use crate::memory::{MemoryReader, MemorySource};
use crate::walk::TypedContents;

/// The largest footer, in bytes.
const LARGEST_FOOTER: u64 = 256;

/// The maximum number of bytes of each stack that are searched for arenas.
const MOST_OF_STACK: u64 = 8 << 20;

/// An arena has its fields at most this many words from the pointer to its chunk.
const NEAR: usize = 3;

/// The size of one piece of memory that is searched for arenas.
const PIECE: u64 = 1 << 20;

/// The values in the chunks of arenas, by address.
#[derive(Debug, Default)]
pub(crate) struct ArenaValues {
    by_address: BTreeMap<u64, (TypedContents, u64)>,
}

impl ArenaValues {
    /// Adds a value. Returns whether it is new, or larger than the value that was known at its address.
    pub(crate) fn add(&mut self, address: u64, contents: TypedContents, bytes: u64) -> bool {
        let known = self.by_address.get(&address);
        let is_new = known.is_none_or(|(_, known)| *known < bytes);
        if is_new {
            self.by_address.insert(address, (contents, bytes));
        }
        is_new
    }

    /// The values in a block, without the values inside of other values.
    pub(crate) fn within(&self, block: &HeapBlock) -> impl Iterator<Item = (TypedContents, u64)> {
        let end = block.address.saturating_add(block.requested);
        let mut free = block.address;
        self.by_address.range(block.address..end).filter_map(move |(address, (contents, bytes))| {
            let is_outer = *address >= free;
            if is_outer {
                free = address.saturating_add(*bytes);
            }
            is_outer.then_some((*contents, *bytes))
        })
    }
}

/// Whether a chunk ends in a footer of this size at an address: the footer has the addresses of the chunk, and of a place in
/// it.
pub(crate) fn is_footer(block: &HeapBlock, at: u64, size: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    let is_last = at.checked_add(size) == Some(block.address.saturating_add(block.requested));
    if !is_last || size > LARGEST_FOOTER || !at.is_multiple_of(size_of::<u64>() as u64) {
        return false;
    }
    let words = (at..at.saturating_add(size)).step_by(size_of::<u64>()).filter_map(word);
    let inside: Vec<u64> = words.filter(|word| (block.address..=at).contains(word)).collect();
    inside.len() > 1 && inside.contains(&block.address)
}

/// The used and the unused part of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkUse {
    start: u64,
    footer: u64,
    /// Where the used part starts, as far as is known.
    used: Option<u64>,
}

impl ChunkUse {
    /// The bytes for values, and how many of them are used. `None` if the arena with this number was not found.
    pub(crate) fn bytes(&self) -> Option<(u64, u64)> {
        Some((self.footer - self.start, self.footer - self.used?))
    }

    /// Takes over the place from words of which one is the chunk's address, perhaps.
    fn note(&mut self, words: impl Iterator<Item = u64>) {
        let mut inside: Vec<u64> = words.filter(|word| (self.start..=self.footer).contains(word)).collect();
        if let Some(start) = inside.iter().position(|word| *word == self.start) {
            inside.swap_remove(start);
        }
        // A new chunk has its end there, which does not show how much of it is used now.
        let found = inside.into_iter().filter(|word| *word < self.footer).min();
        self.used = [self.used, found].into_iter().flatten().min();
    }
}

impl TypedHeap<'_> {
    /// The used parts of all chunks, by block.
    pub(crate) fn find_chunk_uses(&self, memory: &dyn MemorySource) -> HashMap<usize, ChunkUse> {
        let mut uses = HashMap::new();
        let mut reader = MemoryReader::new(memory);
        for (index, block) in self.blocks().iter().enumerate() {
            let Some(TypedContents::Chunk { footer }) = self.contents[index] else { continue };
            let size = self.walk.info().size(footer);
            let Some(at) = block.requested.checked_sub(size) else { continue };
            let (start, at) = (block.address, block.address + at);
            let mut chunk = ChunkUse { start, footer: at, used: None };
            chunk.note(words(reader.read(at, size)));
            uses.insert(index, chunk);
        }
        if uses.values().any(|chunk| chunk.used.is_none()) {
            self.ask_arenas(&mut uses, memory, &mut reader);
        }
        uses
    }

    /// Searches stacks and blocks for arenas: values with the address of a footer and, beside it, of places in its chunk.
    fn ask_arenas(
        &self,
        uses: &mut HashMap<usize, ChunkUse>,
        memory: &dyn MemorySource,
        reader: &mut MemoryReader<'_>,
    ) {
        let footers: HashMap<u64, usize> = uses
            .iter()
            .filter(|(_, chunk)| chunk.used.is_none())
            .map(|(block, chunk)| (chunk.footer, *block))
            .collect();
        let mut search = |start: u64, end: u64| {
            let mut at = start;
            while at < end {
                let piece: Vec<u64> = words(reader.read(at, PIECE.min(end - at))).collect();
                for (place, word) in piece.iter().enumerate() {
                    if let Some(chunk) = footers.get(word).and_then(|block| uses.get_mut(block)) {
                        let near = place.saturating_sub(NEAR)..(place + NEAR + 1).min(piece.len());
                        chunk.note(piece[near].iter().copied());
                    }
                }
                // Arenas at the end of a piece are in the next one, too.
                at = at.saturating_add(PIECE - 8 * (2 * NEAR) as u64);
            }
        };
        for thread in memory.threads() {
            let Some(start) = thread.stack_pointer.map(|start| start.next_multiple_of(8)) else { continue };
            let end = memory.end_of(start).unwrap_or(start).min(start.saturating_add(MOST_OF_STACK));
            search(start, end);
        }
        for (index, block) in self.blocks().iter().enumerate() {
            if matches!(self.contents[index], Some(TypedContents::Chunk { .. })) {
                continue;
            }
            search(block.address, block.address.saturating_add(block.requested));
        }
        for place in self.walk.info().statics() {
            let size = self.walk.info().type_at(place.of).map_or(0, |of| self.walk.info().size(of));
            let places = self.walk.info().places(place, self.walk.bias, &[]);
            places.into_iter().for_each(|start| search(start, start.saturating_add(size.min(PIECE))));
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}
