//! Chunks of arenas that start with a header. Only raw pointers lead to such a chunk: from the arena, and from the
//! header of another chunk.
//!
//! Three facts together mark a chunk: a pointer to a header leads to the start of a larger block without a type, a word
//! of the header leads to the room behind the header, and a reference leads to a value in this room. Other blocks to
//! which pointers to the same type of header lead are chunks, too, even if no reference leads to their values.

use hashbrown::{HashMap, HashSet};

use super::prefixed::ChunkCandidate;
use super::{Inference, TypeOrigin};
use crate::debug_info::TypeId;
use crate::walk::TypedContents;

impl Inference<'_, '_, '_> {
    /// A block as a chunk, if it has a header of this type.
    pub(super) fn headed_chunk(&self, block: usize, of: TypeId) -> Option<TypedContents> {
        let info = self.heap.walk.info();
        let is_same = |chunk: &TypedContents| match chunk {
            TypedContents::HeadedChunk { header } => info.same_as(*header) == info.same_as(of),
            _ => false,
        };
        self.heap.contents[block].filter(is_same)
    }

    /// Finds chunks with headers, and follows the pointers of the headers. These pointers may lead to more chunks. Each
    /// round examines only the blocks to which new pointers lead, and gives a type to at least one block.
    pub(super) fn find_headed_chunks(&mut self) {
        let mut headers: HashSet<TypeId> = HashSet::new();
        // Blocks whose type of header no other fact confirms yet.
        let mut unconfirmed: HashMap<TypeId, Vec<ChunkCandidate>> = HashMap::new();
        loop {
            let mut found = Vec::new();
            for candidate in self.inner.take_candidates() {
                if self.heap.contents[candidate.block].is_some() || !self.leads_behind_header(candidate) {
                    continue;
                }
                let header = self.heap.walk.info().same_as(candidate.header);
                if candidate.has_value && headers.insert(header) {
                    found.extend(unconfirmed.remove(&header).unwrap_or_default());
                }
                if headers.contains(&header) {
                    found.push(candidate);
                } else {
                    unconfirmed.entry(header).or_default().push(candidate);
                }
            }
            found.retain(|candidate| self.heap.contents[candidate.block].is_none());
            if found.is_empty() {
                break;
            }
            found.sort_unstable_by_key(|candidate| candidate.block);
            found.dedup_by_key(|candidate| candidate.block);
            for ChunkCandidate { block, header, .. } in found {
                self.heap.contents[block] = Some(TypedContents::HeadedChunk { header });
                self.heap.origins[block] = TypeOrigin::Owner;
                self.queue.push_back(block as u32);
            }
            self.spread();
        }
        self.settle();
    }

    /// Whether a word of the header leads to the room behind the header, or to its end.
    fn leads_behind_header(&mut self, ChunkCandidate { block, header, .. }: ChunkCandidate) -> bool {
        let block = self.heap.blocks[block];
        let size = self.heap.walk.info().size(header);
        // A damaged program may state any size.
        if size == 0 || size >= block.requested {
            return false;
        }
        let room = block.address.saturating_add(size)..=block.address.saturating_add(block.requested);
        let words = self.reader.read(block.address, size).as_chunks().0.iter();
        words.into_iter().any(|word| room.contains(&u64::from_le_bytes(*word)))
    }
}
