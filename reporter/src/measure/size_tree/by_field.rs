//! The reading that grows a tree.

use crate::allocator::{self, AskUsableSize, DeclaredAllocator};
use crate::engine_abi::{BlockSizes, Marks, PointerAnswer};
use crate::measure::block::{Block, Edge};
use crate::measure::reading::{Observe, Reading, usable_around};
use crate::measure::size_summary::SizeSummary;
use crate::measure::walk_state::WalkState;

use super::growth::{Growth, TypeName};

#[derive(Debug)]
pub(super) struct ByField {
    ask: Ask,
    pub(super) growth: Growth,
    entered_from: Vec<u32>,
    pub(super) state: WalkState,
}

/// The source of a block's bytes.
#[derive(Clone, Copy, Debug)]
enum Ask {
    /// The layout alone.
    Nobody,
    /// The allocator; an engine of DMD for blocks of which only the inside is known.
    Allocator(AskUsableSize, Option<BlockSizes>),
    /// An engine of DMD, and the allocator for blocks that the engine does not know.
    Engine(Marks, Option<AskUsableSize>),
}

impl ByField {
    pub(super) fn new(type_name: TypeName, state: WalkState, marks: Option<Marks>) -> Self {
        let usable_size = allocator::declared().map(DeclaredAllocator::usable_size);
        let ask = match (marks, usable_size) {
            (Some(marks), usable_size) => Ask::Engine(marks, usable_size),
            (None, Some(usable_size)) => Ask::Allocator(usable_size, BlockSizes::of_engine()),
            (None, None) => Ask::Nobody,
        };
        Self { ask, growth: Growth::new(type_name), entered_from: Vec::new(), state }
    }

    pub(super) fn computed(type_name: TypeName) -> Self {
        let growth = Growth::new(type_name);
        Self { ask: Ask::Nobody, growth, entered_from: Vec::new(), state: WalkState::default() }
    }

    /// Whether the source knows more about a block than its layout.
    pub(super) fn usable_size_known(&self) -> bool {
        !matches!(self.ask, Ask::Nobody)
    }
}

#[allow(unsafe_code, reason = "asks the declared allocator")]
impl Ask {
    /// It is never inlined, so that a loop over blocks that only have a layout is a mere sum.
    ///
    /// # Safety
    ///
    /// As for [`Observe::block`].
    #[inline(never)]
    unsafe fn usable(self, block: Block, state: &mut WalkState) -> usize {
        state.note_tag(&block);
        let (marked, allocator) = match self {
            Self::Nobody => (PointerAnswer::Unknown, None),
            Self::Allocator(allocator, _) => (PointerAnswer::Unknown, Some(allocator)),
            Self::Engine(marks, allocator) => (marks.block(block.pointer), allocator),
        };
        let usable = match (marked, allocator) {
            (PointerAnswer::Block(usable), _) => {
                state.note_marked(&block);
                usable
            }
            (PointerAnswer::Fault(fault), _) => state.note_fault(fault, &block),
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared` gives
            // only the global allocator.
            (PointerAnswer::Unknown, Some(allocator)) => unsafe {
                allocator.ask(block.pointer, block.layout)
            },
            (PointerAnswer::Unknown, None) => block.layout.size(),
        };
        state.note_named(&block, usable);
        usable
    }
}

#[allow(unsafe_code, reason = "asks the declared allocator")]
impl Observe for ByField {
    #[inline]
    unsafe fn block(&mut self, block: Block) -> usize {
        let asked = block.layout.size();
        let usable = match self.ask {
            Ask::Nobody => asked,
            // SAFETY: the caller guarantees a live block of the global allocator with this layout.
            _ => unsafe { self.ask.usable(block, &mut self.state) },
        };
        self.growth.add(SizeSummary { asked, usable, blocks: 1 });
        usable
    }

    #[inline]
    fn enclosing(&mut self, block: Block) -> usize {
        let asked = block.layout.size();
        let usable = match self.ask {
            Ask::Engine(marks, _) => {
                let usable = match marks.enclosing(block.pointer) {
                    PointerAnswer::Block(usable) => {
                        self.state.note_marked(&block);
                        usable
                    }
                    PointerAnswer::Fault(fault) => self.state.note_fault(fault, &block),
                    PointerAnswer::Unknown => asked,
                };
                self.state.note_named(&block, usable);
                usable
            }
            Ask::Allocator(_, sizes) => usable_around(&block, sizes),
            Ask::Nobody => asked,
        };
        if self.usable_size_known() {
            self.state.note_tag_around(&block, usable);
        }
        self.growth.add(SizeSummary { asked, usable, blocks: 1 });
        usable
    }

    fn stated(&mut self, bytes: usize) -> usize {
        self.growth.add(SizeSummary { asked: bytes, usable: bytes, blocks: 0 });
        bytes
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    #[inline]
    fn first_visit(&mut self, address: usize) -> bool {
        match self.ask {
            Ask::Engine(marks, _) => self.state.first_visit_with(address, marks),
            Ask::Nobody | Ask::Allocator(..) => self.state.first_visit(address),
        }
    }

    /// For parts below a `dyn` value: as [`Reading::enter_part`], but keeps its result here.
    fn enter(&mut self, edge: Edge, type_name: TypeName) {
        let from = self.growth.enter(edge, type_name);
        self.entered_from.push(from);
    }

    fn leave(&mut self) {
        if let Some(from) = self.entered_from.pop() {
            self.growth.leave(from);
        }
    }

    #[inline(always)]
    fn merged(&mut self, parts: u64) {
        self.growth.merged(parts);
    }
}

impl Reading for ByField {
    /// Plain data owns no block, so it has no node.
    const NAMES: bool = false;
    const STEPS: bool = true;
    const MERGES: bool = true;

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
