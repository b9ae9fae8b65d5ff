//! The bytes of blocks: from their layouts, from the declared allocator, or from an engine of DMD.
//!
//! The source is a value and not a type. A reading that asks anyone calls a function for each block anyway, so one
//! instance of a walk serves every source: the compiler would otherwise compile each measured type several times.

use core::alloc::Layout;

use crate::allocator::{self, AskUsableSize, CUsableSize, DeclaredAllocator, tags};
use crate::engine_abi::{BlockSizes, Marks, PointerAnswer};

use super::block::WalkedBlock;
use super::walk_state::WalkState;

type NameFunction = fn() -> &'static str;

/// The usable bytes of a block that is known by a pointer into its inside only, or the requested ones if no engine knows
/// the block.
#[inline]
pub(crate) fn usable_around(block: &WalkedBlock, sizes: Option<BlockSizes>) -> usize {
    sizes.and_then(|sizes| sizes.around(block.pointer)).unwrap_or(block.layout.size())
}

/// Gives the bytes of each block of a walk, and keeps the state of that walk.
#[derive(Debug)]
pub(crate) struct SizeSource {
    source: ByteSource,
    /// The allocator's function, if there is nothing to note about a block when the walk starts: no engine marks blocks,
    /// and none has a tag. A tag that the program first uses during the walk is that of a new block.
    plain: Option<CUsableSize>,
    pub(crate) state: WalkState,
}

#[derive(Clone, Copy, Debug)]
enum ByteSource {
    /// The layout alone.
    Layout,
    /// The allocator; an engine of DMD for blocks of which only the inside is known.
    Allocator(AskUsableSize, Option<BlockSizes>),
    /// An engine of DMD, which marks each block as reported, and the allocator for blocks that the engine does not know.
    Engine(Marks, Option<AskUsableSize>),
}

#[allow(unsafe_code, reason = "calls the declared allocator")]
impl SizeSource {
    /// The most that is known: by the engine if it marks blocks for this walk, otherwise by the declared allocator.
    pub(crate) fn best(marks: Option<Marks>, state: WalkState) -> Self {
        let usable_size = allocator::declared().map(DeclaredAllocator::usable_size);
        let source = match (marks, usable_size) {
            (Some(marks), usable_size) => ByteSource::Engine(marks, usable_size),
            (None, Some(usable_size)) => ByteSource::Allocator(usable_size, BlockSizes::from_engine()),
            (None, None) => ByteSource::Layout,
        };
        let plain = match source {
            ByteSource::Allocator(AskUsableSize::C(function), _) if !tags::in_use() => Some(function),
            _ => None,
        };
        Self { source, plain, state }
    }

    /// Bytes from layouts only.
    pub(crate) fn computed() -> Self {
        Self { source: ByteSource::Layout, plain: None, state: WalkState::default() }
    }

    /// Whether a block's layout is all that is known about it.
    #[inline]
    pub(crate) fn is_computed(&self) -> bool {
        matches!(self.source, ByteSource::Layout)
    }

    /// The bytes of a block by its start. The walk of each type has many such calls, so only the question to the
    /// allocator is inlined.
    ///
    /// # Safety
    ///
    /// As for [`WalkObserver::block`](super::reading::WalkObserver::block).
    #[inline]
    pub(crate) unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        match self.plain {
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared` gives
            // only the global allocator.
            Some(function) => unsafe { function(block.pointer.cast()) },
            // SAFETY: the caller guarantees what this function requires, which is the same.
            None => unsafe { self.noted_block(block.pointer, block.layout, block.type_name) },
        }
    }

    /// [`block`](Self::block), with a note of what is known about it: its tag, and that the walk marks it.
    ///
    /// The parts of the block are in registers. As a whole it would be on the stack, which each of the many calls would
    /// have to write.
    ///
    /// # Safety
    ///
    /// As for [`block`](Self::block).
    #[inline(never)]
    unsafe fn noted_block(&mut self, pointer: *const u8, layout: Layout, type_name: NameFunction) -> usize {
        let block = WalkedBlock { pointer, layout, type_name };
        let (answer, allocator) = match self.source {
            ByteSource::Layout => return layout.size(),
            ByteSource::Allocator(allocator, _) => (PointerAnswer::Unknown, Some(allocator)),
            ByteSource::Engine(marks, allocator) => (marks.block(pointer), allocator),
        };
        self.state.note_tag(&block);
        let bytes = match (answer, allocator) {
            (PointerAnswer::Block(bytes), _) => {
                self.state.note_marked(&block);
                bytes
            }
            (PointerAnswer::Fault(fault), _) => self.state.note_fault(fault, &block),
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared` gives
            // only the global allocator.
            (PointerAnswer::Unknown, Some(allocator)) => unsafe { allocator.ask(pointer, layout) },
            (PointerAnswer::Unknown, None) => layout.size(),
        };
        if matches!(self.source, ByteSource::Engine(..)) {
            self.state.note_named(&block, bytes);
        }
        bytes
    }

    /// The bytes of the block that has the pointer somewhere inside. Only an engine knows more than the layout.
    #[inline]
    pub(crate) fn enclosing(&mut self, block: WalkedBlock) -> usize {
        match self.source {
            ByteSource::Layout | ByteSource::Allocator(_, None) if !tags::in_use() => block.layout.size(),
            _ => self.noted_enclosing(block.pointer, block.layout, block.type_name),
        }
    }

    #[inline(never)]
    fn noted_enclosing(&mut self, pointer: *const u8, layout: Layout, type_name: NameFunction) -> usize {
        let block = WalkedBlock { pointer, layout, type_name };
        let bytes = match self.source {
            ByteSource::Layout => return layout.size(),
            ByteSource::Allocator(_, sizes) => usable_around(&block, sizes),
            ByteSource::Engine(marks, _) => {
                let bytes = match marks.enclosing(pointer) {
                    PointerAnswer::Block(bytes) => {
                        self.state.note_marked(&block);
                        bytes
                    }
                    PointerAnswer::Fault(fault) => self.state.note_fault(fault, &block),
                    PointerAnswer::Unknown => layout.size(),
                };
                self.state.note_named(&block, bytes);
                bytes
            }
        };
        self.state.note_tag_around(&block, bytes);
        bytes
    }

    /// Whether the walk meets a shared block for the first time in this collection. An engine knows whether the block
    /// that was counted at this address is still there.
    pub(crate) fn first_visit(&mut self, address: usize) -> bool {
        match self.source {
            ByteSource::Engine(marks, _) => self.state.first_visit_with(address, marks),
            ByteSource::Layout | ByteSource::Allocator(..) => self.state.first_visit(address),
        }
    }
}
