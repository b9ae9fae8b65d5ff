//! The reading that grows a tree.

use crate::allocator::{self, AskUsableSize, DeclaredAllocator};
use crate::bridge::Marks;
use crate::reading::{Block, Edge, Observe, Reading};
use crate::size_summary::SizeSummary;
use crate::walk_state::WalkState;

use super::growth::{Growth, TypeName};

#[derive(Debug)]
pub(super) struct ByField {
    pub(super) usable_size: Option<AskUsableSize>,
    pub(super) growth: Growth,
    entered_from: Vec<u32>,
    marks: Option<Marks>,
    pub(super) state: WalkState,
}

impl ByField {
    pub(super) fn new(type_name: TypeName, state: WalkState, marks: Option<Marks>) -> Self {
        Self {
            usable_size: allocator::declared().map(DeclaredAllocator::usable_size),
            growth: Growth::new(type_name),
            entered_from: Vec::new(),
            marks,
            state,
        }
    }
}

#[allow(unsafe_code, reason = "asks the declared allocator")]
impl Observe for ByField {
    #[inline]
    unsafe fn block(&mut self, block: Block) -> usize {
        let asked = block.layout.size();
        let marked = self.marks.and_then(|marks| marks.block(block.pointer));
        let usable = match (marked, self.usable_size) {
            (Some(usable), _) => usable,
            // SAFETY: the caller promises a live block of the global allocator with this layout,
            // and the declared allocator is the global one.
            (None, Some(usable_size)) => unsafe { usable_size.ask(block.pointer, block.layout) },
            (None, None) => asked,
        };
        self.growth.add(SizeSummary { asked, usable, blocks: 1 });
        usable
    }

    #[inline]
    fn enclosing(&mut self, block: Block) -> usize {
        let asked = block.layout.size();
        let usable = self.marks.and_then(|marks| marks.enclosing(block.pointer)).unwrap_or(asked);
        self.growth.add(SizeSummary { asked, usable, blocks: 1 });
        usable
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    /// For what is below a `dyn` value: as [`Reading::enter_part`], with what that returns kept here.
    fn enter(&mut self, edge: Edge, type_name: TypeName) {
        let from = self.growth.enter(edge, type_name);
        self.entered_from.push(from);
    }

    fn leave(&mut self) {
        if let Some(from) = self.entered_from.pop() {
            self.growth.leave(from);
        }
    }
}

impl Reading for ByField {
    /// Plain data owns no block, so it has no node.
    const NAMES: bool = false;
    const STEPS: bool = true;
    const MERGES: bool = true;

    #[inline(always)]
    fn merged(&mut self, parts: u64) {
        self.growth.merged(parts);
    }

    #[inline(always)]
    fn enter_part(&mut self, edge: Edge, type_name: TypeName) -> usize {
        self.growth.enter(edge, type_name) as usize
    }

    #[inline(always)]
    fn leave_part(&mut self, entered_from: usize) {
        self.growth.leave(entered_from as u32);
    }

    fn erase(&mut self) -> &mut dyn Observe {
        self
    }
}
