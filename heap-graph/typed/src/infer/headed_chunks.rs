//! Chunks of arenas that start with a header. Only raw pointers lead to such a chunk: from the arena, and from the
//! header of another chunk.
//!
//! Three facts together mark a chunk: a pointer to a header leads to the start of a larger block without a type, a word
//! of the header leads to the room behind the header, and a reference leads to a value in this room. Other blocks to
//! which pointers to the same type of header lead are chunks, too, even if no reference leads to their values.

use hashbrown::HashSet;

use super::prefixed::{ChunkCandidate, InnerPointers};
use super::{Inference, TypeOrigin};
use crate::debug_info::{DebugInfo, TypeId};
use crate::walk::TypedContents;

/// The maximum number of rounds. The header of a chunk that is found in one round may lead to a chunk of the next round.
const MOST_ROUNDS: usize = 1 << 12;

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

    /// Finds chunks with headers, and follows the pointers of the headers.
    pub(super) fn find_headed_chunks(&mut self) {
        let info = self.heap.walk.info();
        let mut headers: HashSet<TypeId> = HashSet::new();
        for _ in 0..MOST_ROUNDS {
            let mut candidates = self.inner.chunk_candidates(info);
            candidates
                .retain(|one| self.heap.contents[one.block].is_none() && self.leads_behind_header(*one));
            let with_values = candidates.iter().filter(|one| one.has_value);
            headers.extend(with_values.map(|one| info.same_as(one.header)));
            candidates.retain(|one| headers.contains(&info.same_as(one.header)));
            if candidates.is_empty() {
                break;
            }
            for ChunkCandidate { block, header, .. } in candidates {
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
        let room = block.address.saturating_add(size)..=block.address.saturating_add(block.requested);
        let words = self.reader.read(block.address, size).as_chunks().0.iter();
        size < block.requested && words.into_iter().any(|word| room.contains(&u64::from_le_bytes(*word)))
    }
}

impl InnerPointers {
    /// The blocks without a type that start with a header, in the order of their addresses.
    fn chunk_candidates(&self, info: &DebugInfo) -> Vec<ChunkCandidate> {
        let mut all: Vec<ChunkCandidate> = self.headers().collect();
        all.retain(|one| info.size(one.header) > 0);
        all.sort_unstable_by_key(|one| one.block);
        all
    }
}
