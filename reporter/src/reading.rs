//! What a walk means: the [`Reading`] handed in with the ops decides it, not a second derive.
//!
//! A reading is a type, so that the computed one compiles to the plain hand-written sum. Its core,
//! [`Observe`], is object-safe: it is what remains of a reading below a `dyn` value.

use core::alloc::Layout;
use core::fmt;

use crate::allocator::{self, AskUsableSize};
use crate::bridge::Marks;
use crate::walk_state::WalkState;

/// One heap block met by a walk.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Block {
    /// The block's first byte or, in [`Observe::enclosing`], some byte inside it.
    pub pointer: *const u8,
    /// Size and alignment that were asked of the allocator. The size is never 0.
    pub layout: Layout,
    /// Gives the name of the type that lies in the block.
    pub type_name: fn() -> &'static str,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("pointer", &self.pointer)
            .field("layout", &self.layout)
            .field("type_name", &(self.type_name)())
            .finish()
    }
}

/// How a walk got from a value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Edge {
    /// A named field.
    Field(&'static str),
    /// A field of a variant: variant, field.
    VariantField(&'static str, &'static str),
    /// An element of a sequence or set.
    Element,
    /// A key of a map.
    Key,
    /// A value of a map.
    Value,
}

/// The object-safe core of a reading: what is told of each block and each step.
pub trait Observe {
    /// A block that starts at `block.pointer`; returns the bytes to count for it.
    ///
    /// # Safety
    ///
    /// `block.pointer` is the start of a live block of the program's global allocator, allocated
    /// with `block.layout`.
    #[allow(unsafe_code, reason = "an allocator may be asked about the pointer")]
    unsafe fn block(&mut self, block: Block) -> usize;

    /// A block that has `block.pointer` somewhere inside; returns the bytes to count for it.
    ///
    /// Only a reading with a table of live blocks can do better than the layout's size.
    fn enclosing(&mut self, block: Block) -> usize {
        block.layout.size()
    }

    /// What this walk remembers: shared pointers seen, parts skipped.
    fn state(&mut self) -> &mut WalkState;

    /// Whether a shared block is met for the first time in this collection; see
    /// [`MallocSizeOfOps::first_visit`](crate::MallocSizeOfOps::first_visit).
    fn first_visit(&mut self, address: usize) -> bool {
        self.state().first_visit(address)
    }

    /// The walk steps into a part; called only if [`Reading::STEPS`].
    fn enter(&mut self, edge: Edge, type_name: fn() -> &'static str) {
        let _ = (edge, type_name);
    }

    /// The walk leaves the part entered last.
    fn leave(&mut self) {}

    /// The part entered last stands for `parts` parts (0, too); called before it is left, only if
    /// [`Reading::MERGES`].
    fn merged(&mut self, parts: u64) {
        let _ = parts;
    }

    /// A shared block is met, for the first time in this collection or again; `address` is the
    /// same whoever meets it. The first time, the block is told next. Called only if
    /// [`Reading::NAMES`].
    fn shared(&mut self, address: usize, is_first: bool) {
        let _ = (address, is_first);
    }

    /// A pointer that owns nothing points to `address`, which is never read; called only if
    /// [`Reading::NAMES`].
    fn pointer(&mut self, address: usize) {
        let _ = address;
    }

    /// What follows lies in the block told last; called only if [`Reading::STEPS`].
    fn open_block(&mut self) {}

    /// The contents of the block opened last end.
    fn close_block(&mut self) {}
}

/// A meaning of a walk. See [`Computed`] and [`Measured`].
pub trait Reading: Observe + Sized {
    /// Whether names of fields and types are wanted, and plain data is to be visited for them.
    ///
    /// An impl calls [`MallocSizeOfOps::wants_names`](crate::MallocSizeOfOps::wants_names), which
    /// asks the reading behind [`Erased`], too.
    const NAMES: bool;

    /// Whether the walk's steps are told ([`Observe::enter`] and the like): with
    /// [`NAMES`](Self::NAMES), or without for a reading that has no use for plain data and is
    /// spared a visit to each byte of a `Vec<u8>`.
    const STEPS: bool = Self::NAMES;

    /// Whether parts of one kind that follow each other may be told as one, by
    /// [`Observe::merged`].
    const MERGES: bool = false;

    /// [`NAMES`](Self::NAMES); of [`Erased`], that of the reading behind it. No other reading
    /// overrides it.
    #[inline(always)]
    fn wants_names(&self) -> bool {
        Self::NAMES
    }

    /// [`STEPS`](Self::STEPS), as [`wants_names`](Self::wants_names).
    #[inline(always)]
    fn wants_steps(&self) -> bool {
        Self::STEPS
    }

    /// [`MERGES`](Self::MERGES), as [`wants_names`](Self::wants_names).
    #[inline(always)]
    fn merges(&self) -> bool {
        Self::MERGES
    }

    /// [`Observe::enter`] where the reading's type is known: what it returns is handed to the
    /// [`leave_part`](Self::leave_part) that belongs to it, so that the walk's own stack can keep
    /// it.
    #[inline]
    fn enter_part(&mut self, edge: Edge, type_name: fn() -> &'static str) -> usize {
        self.enter(edge, type_name);
        0
    }

    /// [`Observe::leave`], with what [`enter_part`](Self::enter_part) returned.
    #[inline]
    fn leave_part(&mut self, entered: usize) {
        let _ = entered;
        self.leave();
    }

    /// The object-safe core, for a walk below a `dyn` value.
    fn erase(&mut self) -> &mut dyn Observe;
}

/// Bytes from layouts only: sizes as asked of the allocator, which is never touched. Sound with
/// any global allocator.
#[derive(Debug, Default)]
pub struct Computed {
    state: WalkState,
}

impl Computed {
    pub(crate) fn with_state(state: WalkState) -> Self {
        Self { state }
    }
}

#[allow(unsafe_code, reason = "the trait's method is unsafe; this one reads no pointer")]
impl Observe for Computed {
    #[inline]
    unsafe fn block(&mut self, block: Block) -> usize {
        block.layout.size()
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }
}

impl Reading for Computed {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn Observe {
        self
    }
}

/// Usable bytes as the declared allocator tells them, slop included.
///
/// Where Rust shows only the inside of a block (hash tables, B-tree nodes, list nodes) the size is
/// computed for that block.
#[derive(Debug)]
pub struct Measured {
    /// Of the declared allocator.
    usable_size: AskUsableSize,
    state: WalkState,
}

impl Measured {
    /// The reading of the program's allocator, or `None` if
    /// [`global_allocator!`](crate::global_allocator) has not declared one.
    pub fn new() -> Option<Self> {
        Self::with_state(WalkState::default()).ok()
    }

    pub(crate) fn with_state(state: WalkState) -> Result<Self, WalkState> {
        match allocator::declared() {
            Some(allocator) => Ok(Self { usable_size: allocator.usable_size(), state }),
            None => Err(state),
        }
    }
}

#[allow(unsafe_code, reason = "asks the declared allocator")]
impl Observe for Measured {
    #[inline]
    unsafe fn block(&mut self, block: Block) -> usize {
        // SAFETY: the caller promises a live block of the global allocator with this layout, and
        // the declared allocator is the global one.
        unsafe { self.usable_size.ask(block.pointer, block.layout) }
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }
}

impl Reading for Measured {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn Observe {
        self
    }
}

/// What a report under `explicit/` reads when an engine of DMD is connected: every block is marked as
/// reported, and its bytes are those that the engine knows, also where only its inside is seen.
#[derive(Debug)]
pub(crate) struct Marking {
    marks: Marks,
    /// Of the declared allocator, for what the engine does not know.
    usable_size: Option<AskUsableSize>,
    state: WalkState,
}

impl Marking {
    pub(crate) fn with_state(marks: Marks, state: WalkState) -> Self {
        let usable_size = allocator::declared().map(allocator::DeclaredAllocator::usable_size);
        Self { marks, usable_size, state }
    }
}

#[allow(unsafe_code, reason = "asks the declared allocator")]
impl Observe for Marking {
    unsafe fn block(&mut self, block: Block) -> usize {
        match (self.marks.block(block.pointer), self.usable_size) {
            (Some(bytes), _) => {
                self.state.note_marked(&block);
                bytes
            }
            // SAFETY: the caller promises a live block of the global allocator with this layout, and
            // the declared allocator is the global one.
            (None, Some(usable_size)) => unsafe { usable_size.ask(block.pointer, block.layout) },
            (None, None) => block.layout.size(),
        }
    }

    fn enclosing(&mut self, block: Block) -> usize {
        let Some(bytes) = self.marks.enclosing(block.pointer) else { return block.layout.size() };
        self.state.note_marked(&block);
        bytes
    }

    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    fn first_visit(&mut self, address: usize) -> bool {
        self.state.first_visit_with(address, self.marks)
    }
}

impl Reading for Marking {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn Observe {
        self
    }
}

/// Any reading, behind a `dyn` boundary. Erasing it again gives the same.
///
/// Its constants are the most that a reading can want. A walk tells it what the reading behind it
/// wants, so that plain data is not visited for a reading without names.
pub struct Erased<'a> {
    observer: &'a mut dyn Observe,
    wants_names: bool,
    wants_steps: bool,
    merges: bool,
}

impl<'a> Erased<'a> {
    pub(crate) fn new<R: Reading>(reading: &'a mut R) -> Self {
        let (wants_names, wants_steps, merges) =
            (reading.wants_names(), reading.wants_steps(), reading.merges());
        Self { observer: reading.erase(), wants_names, wants_steps, merges }
    }
}

impl fmt::Debug for Erased<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Erased")
    }
}

#[allow(unsafe_code, reason = "forwards")]
impl Observe for Erased<'_> {
    unsafe fn block(&mut self, block: Block) -> usize {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.observer.block(block) }
    }

    fn enclosing(&mut self, block: Block) -> usize {
        self.observer.enclosing(block)
    }

    fn state(&mut self) -> &mut WalkState {
        self.observer.state()
    }

    fn first_visit(&mut self, address: usize) -> bool {
        self.observer.first_visit(address)
    }

    fn enter(&mut self, edge: Edge, type_name: fn() -> &'static str) {
        self.observer.enter(edge, type_name);
    }

    fn leave(&mut self) {
        self.observer.leave();
    }

    fn merged(&mut self, parts: u64) {
        self.observer.merged(parts);
    }

    fn shared(&mut self, address: usize, is_first: bool) {
        self.observer.shared(address, is_first);
    }

    fn pointer(&mut self, address: usize) {
        self.observer.pointer(address);
    }

    fn open_block(&mut self) {
        self.observer.open_block();
    }

    fn close_block(&mut self) {
        self.observer.close_block();
    }
}

impl Reading for Erased<'_> {
    const NAMES: bool = true;
    const MERGES: bool = true;

    #[inline]
    fn wants_names(&self) -> bool {
        self.wants_names
    }

    #[inline]
    fn wants_steps(&self) -> bool {
        self.wants_steps
    }

    #[inline]
    fn merges(&self) -> bool {
        self.merges
    }

    fn erase(&mut self) -> &mut dyn Observe {
        &mut *self.observer
    }
}
