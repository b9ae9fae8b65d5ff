//! Chunks of arenas, and the types of the values in them.

use dmd_analyze::TypeVerdict;

use super::{Inference, StaticsPass, TypeOrigin};
use crate::arena;
use crate::debug_info::TypeId;
use crate::walk::{FoundPointer, PointerTarget, TypedContents};

impl Inference<'_, '_, '_> {
    pub(super) fn is_chunk(&self, block: usize) -> bool {
        matches!(self.heap.contents[block], Some(TypedContents::Chunk { .. }))
    }

    /// Whether a block is a chunk that has this footer at an address.
    pub(super) fn is_footer(&self, block: usize, at: u64, footer: TypeId) -> bool {
        let size = self.heap.walk.info().size(footer);
        arena::is_footer(&self.heap.blocks[block], at, size, |address| self.reader.word(address))
    }

    /// Finds the chunks that a function of an arena allocated: the arena itself may be on a stack.
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

    /// Finds the types of values in chunks: from pointers of typed blocks, of statics and of other values. These values give
    /// types to blocks, too.
    pub(super) fn find_values(&mut self) {
        if !(0..self.heap.blocks.len()).any(|block| self.is_chunk(block)) {
            return;
        }
        for block in 0..self.heap.blocks.len() {
            if self.read_pointers(block) {
                let found = core::mem::take(&mut self.heap.walk.found);
                found.iter().for_each(|pointer| self.add_value(pointer));
                self.heap.walk.found = found;
            }
        }
        self.statics(StaticsPass::Values);
        while let Some((address, contents, bytes)) = self.values.pop() {
            if !self.heap.walk.has_any(contents) {
                continue;
            }
            self.heap.walk.block(self.reader.read(address, bytes), contents);
            let found = core::mem::take(&mut self.heap.walk.found);
            for pointer in &found {
                self.add_value(pointer);
                self.take_over(None, pointer);
            }
            self.heap.walk.found = found;
        }
        self.spread();
        self.settle();
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
        let Some(TypedContents::Chunk { footer }) = self.heap.contents[index] else { return };
        let block = self.heap.blocks[index];
        let end = block.address.saturating_add(block.requested).saturating_sub(info.size(footer));
        if pointer.value.checked_add(bytes).is_some_and(|of_value| of_value <= end)
            && self.heap.values.add(pointer.value, contents, bytes)
        {
            self.values.push((pointer.value, contents, bytes));
        }
    }
}
