//! Chunks of arenas, and the types of the values in them.

use dmd_analyze::TypeVerdict;

use hashbrown::{HashMap, HashSet};

use super::{Inference, StaticsPass, TypeOrigin, TypedHeap};
use crate::arena::{self, ChunkUse};
use crate::debug_info::TypeId;
use crate::memory::{MemoryReader, MemorySource};
use crate::walk::{FoundPointer, PointerTarget, TypedContents};

/// The maximum number of bytes of each stack that are searched for arenas.
const MOST_OF_STACK: u64 = 8 << 20;

/// The largest distance, in words, between two fields of an arena: its pointer to a chunk, and another field.
const NEAR: usize = 3;

/// The size of one piece of memory that is searched for arenas.
const PIECE: u64 = 1 << 20;

/// The maximum number of bytes that are read of values in chunks, as a multiple of the chunks' bytes. The limit is
/// needed because many slices may lead to parts of one array.
const READ_AT_MOST: u64 = 8;

impl Inference<'_, '_, '_> {
    pub(super) fn is_chunk(&self, block: usize) -> bool {
        self.heap.contents[block].is_some_and(TypedContents::is_chunk)
    }

    /// Whether a block is a chunk with a footer of this type at an address.
    pub(super) fn is_footer(&self, block: usize, at: u64, footer: TypeId) -> bool {
        let size = self.heap.walk.info().size(footer);
        arena::is_footer(&self.heap.blocks[block], at, size, |address| self.reader.word(address))
    }

    /// Finds chunks by the arena's function in their allocation stacks. The arena itself may be on a thread's stack, so
    /// a chunk may exist without a known pointer to it.
    pub(super) fn find_chunks(&mut self) {
        let mut footers = None;
        for index in 0..self.heap.blocks.len() {
            let block = self.heap.blocks[index];
            let Some(TypeVerdict::Chunk { arena }) = self.heap.stacks.verdict(block.stack) else { continue };
            if self.heap.contents[index].is_some() {
                continue;
            }
            let info = self.heap.walk.info();
            let footers = footers.get_or_insert_with(|| info.chunk_footers());
            let of_arena = |footer: &&TypeId| info.name(**footer).split("::").next() == Some(arena);
            let found = footers.iter().filter(of_arena).find(|footer| {
                let at = block.requested.checked_sub(info.size(**footer));
                at.is_some_and(|at| self.is_footer(index, block.address + at, **footer))
            });
            if let Some(footer) = found.copied() {
                self.heap.contents[index] = Some(TypedContents::Chunk { footer });
                self.heap.origins[index] = TypeOrigin::Stack;
                self.queue.push_back(index as u32);
            }
        }
    }

    /// Stores that a reference leads to a value in a block of bytes.
    pub(super) fn note_value_in_bytes(&mut self, index: usize, pointer: &FoundPointer) {
        if self.flat_chunk(index, pointer).is_some() {
            self.with_values.insert(index);
        }
    }

    /// A block of bytes as a chunk, if a reference leads to a value in the block. Some arenas, such as rustc's, own their
    /// chunks as bytes. The parts of texts and of bytes are not values.
    fn flat_chunk(&self, index: usize, pointer: &FoundPointer) -> Option<TypedContents> {
        let Some(TypedContents::Slice { element: byte, .. }) = self.heap.contents[index] else { return None };
        let PointerTarget::Start { contents, .. } = pointer.target else { return None };
        let info = self.heap.walk.info();
        let is_value = matches!(contents, TypedContents::One(_) | TypedContents::Slice { .. })
            && info.size(contents.element()) > 1;
        (pointer.is_reference && is_value && info.size(byte) == 1 && !self.heap.text[index].is_text())
            .then_some(TypedContents::FlatChunk { byte })
    }

    /// Finds the types of values in chunks, from pointers of typed blocks, of statics and of other values. The pointers
    /// of these values also determine types of blocks.
    pub(super) fn find_values(&mut self, memory: &dyn MemorySource) {
        self.find_headed_chunks();
        let chunks = (0..self.heap.blocks.len()).filter(|block| self.is_chunk(*block));
        let in_chunks =
            chunks.fold(0, |sum: u64, block| sum.saturating_add(self.heap.blocks[block].requested));
        if in_chunks == 0 && self.with_values.is_empty() {
            return;
        }
        let in_bytes = self.with_values.iter().map(|block| self.heap.blocks[*block].requested).sum::<u64>();
        let mut budget = in_chunks.saturating_add(in_bytes).saturating_mul(READ_AT_MOST);
        for block in 0..self.heap.blocks.len() {
            if self.read_pointers(block) {
                let found = core::mem::take(&mut self.heap.walk.found);
                found.iter().for_each(|pointer| self.add_value(pointer));
                self.heap.walk.found = found;
            }
        }
        self.statics(StaticsPass::Values);
        self.follow_values(&mut budget);
        let unsure = self.find_unsure_values(memory);
        self.follow_values(&mut budget);
        self.heap.values.remove_contradicted(&unsure);
        self.find_outgrown();
        self.spread();
        self.settle();
    }

    /// Finds values behind the buffers of vectors whose lengths are unknown: the vectors themselves are only on a
    /// thread's stack. The elements of such a buffer may be stale. So a value counts only if it is in the used part of
    /// a chunk, if it overlaps no value with a sure pointer, and if no element of another such buffer contradicts an
    /// element of its buffer. Returns the addresses of the values.
    fn find_unsure_values(&mut self, memory: &dyn MemorySource) -> Vec<u64> {
        self.heap.chunk_uses = self.heap.find_chunk_uses(memory);
        let known = self.heap.values.ranges();
        let mut unsure: Vec<UnsureValue> = Vec::new();
        for block in 0..self.heap.blocks.len() {
            let is_of_stack =
                matches!(self.heap.contents[block], Some(TypedContents::Slice { len: None, .. }));
            if !is_of_stack || !self.read_pointers(block) {
                continue;
            }
            for pointer in self.heap.walk.found.iter().filter(|pointer| !pointer.sure) {
                let chunk = self.heap.index.find(&self.heap.blocks, pointer.value);
                let used = chunk.and_then(|chunk| self.heap.chunk_uses.get(&chunk));
                if used.is_some_and(|used| used.is_used(pointer.value))
                    && let PointerTarget::Start { contents, bytes: Some(bytes), .. } = pointer.target
                    && !is_taken(&known, pointer.value, bytes)
                {
                    let of = self.heap.walk.info().same_as(contents.element());
                    let pointer = FoundPointer { sure: true, ..*pointer };
                    unsure.push(UnsureValue { start: pointer.value, bytes, of, pointer, buffer: block });
                }
            }
        }
        unsure.sort_unstable_by_key(|value| (value.start, value.bytes, value.of));
        // If the elements of two buffers lead to different values in the same bytes, one of the buffers is stale. Which
        // one is unknown, so both are left out.
        let mut contradicted: HashSet<usize> = HashSet::new();
        let mut widest: Option<&UnsureValue> = None;
        for value in &unsure {
            if let Some(before) = widest.filter(|before| before.end() > value.start && !before.is_same(value))
            {
                contradicted.extend([before.buffer, value.buffer]);
            }
            widest = widest.filter(|before| before.end() >= value.end()).or(Some(value));
        }
        unsure.retain(|value| !contradicted.contains(&value.buffer));
        unsure.iter().for_each(|value| self.add_value(&value.pointer));
        unsure.into_iter().map(|value| value.start).collect()
    }

    /// Reads the values that were not read yet, and follows their pointers.
    fn follow_values(&mut self, budget: &mut u64) {
        while let Some((address, contents, bytes)) = self.values.pop() {
            if !self.heap.walk.has_any(contents) {
                continue;
            }
            let Some(left) = budget.checked_sub(bytes) else { break };
            *budget = left;
            self.heap.walk.block(self.reader.read(address, bytes), contents);
            let found = core::mem::take(&mut self.heap.walk.found);
            for pointer in &found {
                self.add_value(pointer);
                self.take_over(None, pointer);
            }
            self.heap.walk.found = found;
        }
    }

    /// Adds the value that a pointer leads to, if it is inside of a chunk.
    pub(super) fn add_value(&mut self, pointer: &FoundPointer) {
        let PointerTarget::Start { contents, bytes, .. } = pointer.target else { return };
        if !(pointer.sure && pointer.certain()) {
            return;
        }
        let info = self.heap.walk.info();
        let size = info.size(contents.element());
        let bytes = match contents {
            TypedContents::One(_) => Some(size),
            TypedContents::Slice { len, .. } => bytes.or_else(|| len?.checked_mul(size)),
            _ => None,
        };
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { return };
        let Some(index) = self.heap.index.find(&self.heap.blocks, pointer.value) else { return };
        if let Some(chunk) = self.flat_chunk(index, pointer) {
            self.heap.contents[index] = Some(chunk);
        }
        let (before, after) = match self.heap.contents[index] {
            Some(TypedContents::Chunk { footer }) => (0, info.size(footer)),
            Some(TypedContents::HeadedChunk { header }) => (info.size(header), 0),
            // Parts of texts and of bytes are not values.
            Some(TypedContents::FlatChunk { .. }) if size > 1 => (0, 0),
            _ => return,
        };
        let block = self.heap.blocks[index];
        let end = block.address.saturating_add(block.requested).saturating_sub(after);
        if pointer.value >= block.address.saturating_add(before)
            && pointer.value.checked_add(bytes).is_some_and(|of_value| of_value <= end)
            && self.heap.values.add(pointer.value, contents, bytes)
        {
            self.values.push((pointer.value, contents, bytes));
        }
    }
}

/// A value behind a pointer that may be stale.
struct UnsureValue {
    start: u64,
    bytes: u64,
    of: TypeId,
    pointer: FoundPointer,
    /// The block with the pointer.
    buffer: usize,
}

impl UnsureValue {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.start, self.bytes, self.of) == (other.start, other.bytes, other.of)
    }
}

/// Whether a value overlaps one of the ranges. The ranges are sorted and do not overlap each other.
fn is_taken(ranges: &[(u64, u64)], start: u64, bytes: u64) -> bool {
    let after = ranges.partition_point(|(_, end)| *end <= start);
    ranges.get(after).is_some_and(|(first, _)| *first < start.saturating_add(bytes))
}

impl TypedHeap<'_> {
    /// The number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.contents.iter().flatten().filter(|contents| contents.is_chunk()).count()
    }

    /// The used parts of all chunks, by block.
    pub(crate) fn find_chunk_uses(&self, memory: &dyn MemorySource) -> HashMap<usize, ChunkUse> {
        let mut uses = HashMap::new();
        let mut reader = MemoryReader::new(memory);
        for (index, block) in self.blocks().iter().enumerate() {
            let (start, end) = (block.address, block.address.saturating_add(block.requested));
            let chunk = match self.contents[index] {
                Some(TypedContents::Chunk { footer }) => {
                    let size = self.walk.info().size(footer);
                    let Some(at) = block.requested.checked_sub(size) else { continue };
                    let mut chunk = ChunkUse::new(start, start + at);
                    chunk.note(words(reader.read(start + at, size)));
                    chunk
                }
                Some(TypedContents::HeadedChunk { header }) => {
                    let size = self.walk.info().size(header);
                    let first = start.saturating_add(size).min(end);
                    let mut chunk = ChunkUse::upward(first, end, self.values.end_within(block).max(first));
                    // The end of the chunk is not the end of its used part, unless the chunk is full.
                    chunk.note(words(reader.read(start, size)).filter(|word| *word < end));
                    chunk
                }
                Some(TypedContents::FlatChunk { .. }) => {
                    ChunkUse::upward(start, end, self.values.end_within(block))
                }
                _ => continue,
            };
            uses.insert(index, chunk);
        }
        if uses.values().any(|chunk| chunk.end_of_unknown().is_some()) {
            self.ask_arenas(&mut uses, memory, &mut reader);
        }
        uses
    }

    /// Searches stacks, blocks and statics for arenas. An arena contains the address of a chunk's footer or end and, next
    /// to it, addresses in the chunk.
    fn ask_arenas(
        &self,
        uses: &mut HashMap<usize, ChunkUse>,
        memory: &dyn MemorySource,
        reader: &mut MemoryReader<'_>,
    ) {
        let ends: HashMap<u64, usize> =
            uses.iter().filter_map(|(block, chunk)| Some((chunk.end_of_unknown()?, *block))).collect();
        let mut search = |start: u64, end: u64| {
            let mut at = start;
            while at < end {
                let piece: Vec<u64> = words(reader.read(at, PIECE.min(end - at))).collect();
                // A damaged file may state any size.
                if piece.is_empty() {
                    break;
                }
                for (place, word) in piece.iter().enumerate() {
                    if let Some(chunk) = ends.get(word).and_then(|block| uses.get_mut(block)) {
                        let near = place.saturating_sub(NEAR)..(place + NEAR + 1).min(piece.len());
                        let others = near.filter(|other| *other != place);
                        chunk.note(others.map(|other| piece[other]));
                    }
                }
                // The next piece overlaps the end of this piece, so each arena is completely in one of the pieces.
                at = at.saturating_add(PIECE - 8 * (2 * NEAR) as u64);
            }
        };
        for thread in memory.threads() {
            let Some(start) = thread.stack_pointer.map(|start| start.next_multiple_of(8)) else { continue };
            let end = memory.end_of(start).unwrap_or(start).min(start.saturating_add(MOST_OF_STACK));
            search(start, end);
        }
        for (index, block) in self.blocks().iter().enumerate() {
            if self.contents[index].is_some_and(TypedContents::is_chunk) {
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
