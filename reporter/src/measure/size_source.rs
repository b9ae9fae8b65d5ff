//! The bytes of blocks: from their layouts, from the declared allocator, or from an engine of DMD.
//!
//! The source is a value, not a type. A reading that measures calls a function for each block anyway, so one instance
//! of a walk serves every source. With a type, the compiler would compile each measured type several times.

use core::alloc::Layout;

use crate::allocator::{self, AskUsableSize, CUsableSize, DeclaredAllocator, tags};
use crate::engine_abi::{BlockSizes, Marks, PointerAnswer};

use super::block::WalkedBlock;
use super::walk_state::WalkState;

type NameFunction = fn() -> &'static str;

/// The usable bytes of a block whose start is unknown, by an address inside the block. Returns the requested bytes if
/// no engine has the block.
#[inline]
pub(crate) fn usable_around(block: &WalkedBlock, sizes: Option<BlockSizes>) -> usize {
    sizes.and_then(|sizes| sizes.around(block.pointer)).unwrap_or(block.layout.size())
}

/// Returns the bytes of each block of a walk, and keeps the state of that walk.
#[derive(Debug)]
pub(crate) struct SizeSource {
    source: ByteSource,
    /// The allocator's function, if the walk needs only the size of each block. This is the case if no engine marks
    /// blocks, and no block has a tag when the walk starts. (If the program starts to use tags during the walk, only
    /// new blocks have tags.)
    plain: Option<CUsableSize>,
    pub(crate) state: WalkState,
}

#[derive(Clone, Copy, Debug)]
enum ByteSource {
    /// Uses the layout alone.
    Layout,
    /// Uses the allocator. For blocks whose start is not accessible, uses an engine of DMD, if there is one.
    Allocator(AskUsableSize, Option<BlockSizes>),
    /// Uses an engine of DMD, which marks each block as reported. For blocks that the engine does not have, uses the
    /// allocator.
    Engine(Marks, Option<AskUsableSize>),
}

#[allow(unsafe_code, reason = "calls the declared allocator")]
impl SizeSource {
    /// The most exact source: the engine if it marks blocks for this walk, otherwise the declared allocator,
    /// otherwise layouts.
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

    /// Uses layouts only.
    pub(crate) fn computed() -> Self {
        Self { source: ByteSource::Layout, plain: None, state: WalkState::default() }
    }

    /// Whether the source uses layouts only.
    #[inline]
    pub(crate) fn is_computed(&self) -> bool {
        matches!(self.source, ByteSource::Layout)
    }

    /// The bytes of a block, by its start. The walk of each type contains many such calls, so only the direct call of
    /// the allocator is inlined.
    ///
    /// # Safety
    ///
    /// The contract of [`WalkObserver::block`](super::reading::WalkObserver::block) applies.
    #[inline]
    pub(crate) unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        match self.plain {
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared`
            // returns only the global allocator.
            Some(function) => unsafe { function(block.pointer.cast()) },
            // SAFETY: the caller guarantees the same precondition.
            None => unsafe { self.noted_block(block.pointer, block.layout, block.type_name) },
        }
    }

    /// Like [`block`](Self::block), but also records the block's tag, and marks the block.
    ///
    /// The parts of the block are separate arguments, in registers. A struct would be on the stack, and each of the
    /// many calls would have to write it.
    ///
    /// # Safety
    ///
    /// The contract of [`block`](Self::block) applies.
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
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared`
            // returns only the global allocator.
            (PointerAnswer::Unknown, Some(allocator)) => unsafe { allocator.ask(pointer, layout) },
            (PointerAnswer::Unknown, None) => layout.size(),
        };
        if matches!(self.source, ByteSource::Engine(..)) {
            self.state.note_named(&block, bytes);
        }
        bytes
    }

    /// The bytes of the block that contains the pointer's address. Without an engine, returns the layout's size.
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

    /// Whether the walk meets a shared block for the first time in this collection. With an engine, also true if
    /// another block has replaced the counted block at this address.
    pub(crate) fn first_visit(&mut self, address: usize) -> bool {
        match self.source {
            ByteSource::Engine(marks, _) => self.state.first_visit_with(address, marks),
            ByteSource::Layout | ByteSource::Allocator(..) => self.state.first_visit(address),
        }
    }
}
