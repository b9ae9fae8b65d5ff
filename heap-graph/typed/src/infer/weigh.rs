//! Decides between pointers that contradict a block's stack or each other.

use dmd_analyze::TypeVerdict;

use super::{Inference, TypeOrigin};
use crate::debug_info::TypeKind;
use crate::evidence::PointerClaim;
use crate::views::is_same;
use crate::walk::TypedContents;

impl Inference<'_, '_, '_> {
    /// Weighs all pointers that contradict the known types of blocks. Follows the pointers of blocks that get other
    /// types, until no type changes.
    pub(super) fn settle(&mut self) {
        let info = self.heap.walk.info();
        while let Some(open) = self.evidence.next() {
            for (index, claims) in open {
                let Some(known) = self.heap.contents[index] else { continue };
                let Some((said, pointers)) = self.evidence.heaviest(info, &claims) else { continue };
                let by_stack = self.heap.origins[index] == TypeOrigin::Stack;
                let wins = match by_stack {
                    true => self.outweighs_stack(index, known, said),
                    false => pointers > self.evidence.pointers(index),
                };
                if wins {
                    self.retract(index);
                    self.heap.origins[index] = TypeOrigin::Owner;
                    self.heap.contents[index] = Some(said.contents);
                    self.evidence.decide(index, pointers);
                    self.queue.push_back(index as u32);
                }
            }
            self.evidence.forget_decided();
            self.spread();
        }
    }

    /// Removes the evidence of a block's pointers, before the block gets another type.
    fn retract(&mut self, block: usize) {
        if !self.read_pointers(block) {
            return;
        }
        let found = core::mem::take(&mut self.heap.walk.found);
        for pointer in found.iter().filter(|pointer| pointer.sure && pointer.certain()) {
            let Some((index, Some(said))) = self.find_target(pointer) else { continue };
            if self.heap.contents[index].is_some_and(|known| is_same(self.heap.walk.info(), known, said)) {
                self.evidence.retract(index);
            }
        }
        self.heap.walk.found = found;
    }

    /// Whether a pointer is right and the stack of its block is wrong. If another pointer agrees with the stack, the
    /// stack is right.
    fn outweighs_stack(&mut self, index: usize, known: TypedContents, said: PointerClaim) -> bool {
        if self.evidence.pointers(index) > 0 {
            return false;
        }
        let info = self.heap.walk.info();
        // The pointer's capacity is the block's size: the elements changed in place, or a value of another type took
        // over the buffer.
        let is_buffer = match known {
            TypedContents::Slice { .. } => true,
            TypedContents::One(of) => matches!(info.get(of).kind, TypeKind::Array(_, Some(_))),
            _ => false,
        };
        if said.owns && is_buffer {
            return true;
        }
        let (named, owned) = (known.element(), said.contents.element());
        // Bytes may be room for values of other types, unless they are text.
        let stack = self.heap.blocks[index].stack;
        let is_room =
            matches!(known, TypedContents::Slice { .. }) && info.size(named) <= 1 && info.size(owned) > 1;
        if is_room {
            let named = self.heap.stacks.verdict(stack).and_then(TypeVerdict::type_name);
            return named.is_none_or(|named| !named.starts_with("str"));
        }
        // Two versions of a type have the same name. Only the pointer determines the version.
        if known.is_like(said.contents) && info.name(named) == info.name(owned) {
            return true;
        }
        // If pointers of a type also lead to larger blocks, the type is only the header of other types.
        if self.evidence.is_header(info.same_as(owned)) {
            return false;
        }
        let is_unsure = self.heap.stacks.is_same_layout(stack) && info.same_layout(named, owned);
        is_unsure || stack.is_some_and(|stack| self.merged.explain(stack, named, owned, info))
    }
}
