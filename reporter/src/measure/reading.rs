//! The meaning of a walk: the [`Reading`] in the ops decides it, not a second derive.
//!
//! A reading is a type, so that the computed one compiles to the plain hand-written sum. Its core,
//! [`WalkObserver`], is object-safe: it is what remains of a reading below a `dyn` value.

use core::fmt;

use crate::engine_abi::Marks;

use super::block::{Edge, WalkedBlock};
use super::size_source::SizeSource;
use super::walk_state::WalkState;

/// Only this crate and `heap-graph` have readings, so that a later version can add to what a walk offers.
#[diagnostic::on_unimplemented(
    message = "a program cannot add readings, such as `{Self}`",
    label = "readings are sealed",
    note = "for the bytes by field and type there is `size_tree`, for the blocks themselves the crate `heap-graph`"
)]
pub trait SealedReading {}

/// The object-safe core of a reading: the walk calls it for each block and each step.
///
/// It is sealed: only this framework implements it.
pub trait WalkObserver: SealedReading {
    /// Takes a block that starts at `block.pointer`, and returns the bytes to count for it.
    ///
    /// # Safety
    ///
    /// `block.pointer` is the start of a live block of the program's global allocator, allocated
    /// with `block.layout`.
    #[allow(unsafe_code, reason = "an allocator may be asked about the pointer")]
    unsafe fn block(&mut self, block: WalkedBlock) -> usize;

    /// Takes a block that has `block.pointer` somewhere inside, and returns the bytes to count for it.
    ///
    /// Only a reading with a table of live blocks can do better than the layout's size.
    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        block.layout.size()
    }

    /// Takes bytes that a value states of itself ([`MallocSizeOfOps::stated`](crate::MallocSizeOfOps::stated)), of
    /// which no block is known, and returns the bytes to count for them.
    fn stated(&mut self, bytes: usize) -> usize {
        bytes
    }

    /// The state of this walk: the shared blocks it has counted and the parts it has skipped.
    fn state(&mut self) -> &mut WalkState;

    /// Whether the walk meets a shared block for the first time in this collection; see
    /// [`MallocSizeOfOps::first_visit`](crate::MallocSizeOfOps::first_visit).
    fn first_visit(&mut self, address: usize) -> bool {
        self.state().first_visit(address)
    }

    /// The walk enters a part. It calls this only if [`Reading::STEPS`].
    fn enter(&mut self, edge: Edge, type_name: fn() -> &'static str) {
        let _ = (edge, type_name);
    }

    /// The walk leaves the part entered last.
    fn leave(&mut self) {}

    /// The part entered last stands for `parts` parts, which may be 0. The walk calls this before it leaves the part,
    /// and only if [`Reading::MERGES`].
    fn merged(&mut self, parts: u64) {
        let _ = parts;
    }

    /// The walk meets a shared block, for the first time in this collection or again; `address` is the same from
    /// wherever the walk comes. The first time, [`block`](Self::block) follows. The walk calls this only if
    /// [`Reading::NAMES`].
    fn shared(&mut self, address: usize, is_first: bool) {
        let _ = (address, is_first);
    }

    /// A pointer that owns nothing points to `address`, which must not be read. The walk calls this only if
    /// [`Reading::NAMES`].
    fn pointer(&mut self, address: usize) {
        let _ = address;
    }

    /// The parts that follow lie in the last block. The walk calls this only if [`Reading::STEPS`].
    fn open_block(&mut self) {}

    /// The contents of the block opened last end.
    fn close_block(&mut self) {}
}

/// A meaning of a walk. See [`ComputedReading`](crate::measure::ComputedReading) and [`MeasuredReading`](crate::measure::MeasuredReading).
///
/// An impl of [`MallocSizeOf`](crate::MallocSizeOf) is generic over it. The trait is sealed.
pub trait Reading: WalkObserver + Sized {
    /// Whether the reading wants the names of fields and types, for which the walk must visit plain data too.
    ///
    /// An impl calls [`MallocSizeOfOps::wants_names`](crate::MallocSizeOfOps::wants_names), which
    /// asks the reading behind [`ErasedReading`], too.
    const NAMES: bool;

    /// Whether the walk calls [`WalkObserver::enter`] and the like at its steps. A reading may want steps without
    /// [`NAMES`](Self::NAMES): then the walk need not visit each byte of a `Vec<u8>`.
    const STEPS: bool = Self::NAMES;

    /// Whether the walk may merge consecutive parts of one kind into one, with [`WalkObserver::merged`].
    const MERGES: bool = false;

    /// [`NAMES`](Self::NAMES); of [`ErasedReading`], that of the reading behind it. No other reading
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

    /// [`WalkObserver::enter`] where the reading's type is known. The walk keeps the result on its stack and passes it to
    /// the matching [`leave_part`](Self::leave_part).
    #[inline]
    fn enter_part(&mut self, edge: Edge, type_name: fn() -> &'static str) -> usize {
        self.enter(edge, type_name);
        0
    }

    /// [`WalkObserver::leave`], with the result of [`enter_part`](Self::enter_part).
    #[inline]
    fn leave_part(&mut self, entered: usize) {
        let _ = entered;
        self.leave();
    }

    /// The object-safe core, for a walk below a `dyn` value.
    fn erase(&mut self) -> &mut dyn WalkObserver;
}

/// Bytes from layouts only: the sizes that the program requested. It touches no allocator, and is sound with any
/// global allocator.
#[derive(Debug, Default)]
pub struct ComputedReading {
    state: WalkState,
}

impl SealedReading for ComputedReading {}

#[allow(unsafe_code, reason = "the trait's method is unsafe; this one reads no pointer")]
impl WalkObserver for ComputedReading {
    #[inline]
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        block.layout.size()
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }
}

impl Reading for ComputedReading {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}

/// Usable bytes from the declared allocator, slop included.
///
/// Where Rust shows only the inside of a block (hash tables, B-tree nodes, list nodes), the reading computes the size
/// of that block, unless an engine of DMD knows it.
#[derive(Debug)]
pub struct MeasuredReading(SizeSource);

impl MeasuredReading {
    /// The reading of the program's allocator, or `None` if
    /// [`global_allocator!`](crate::global_allocator) has not declared one.
    pub fn new() -> Option<Self> {
        let reading = Self::best(None, WalkState::default());
        (!reading.0.is_computed()).then_some(reading)
    }

    /// The best that is known about blocks, which without a declared allocator and without an engine is their layout.
    ///
    /// With `marks` it is the reading of a report under `explicit/` while an engine of DMD is connected: it marks every
    /// block as reported, and counts the bytes that the engine knows, even for a block of which only the inside is
    /// visible.
    pub(crate) fn best(marks: Option<Marks>, state: WalkState) -> Self {
        Self(SizeSource::best(marks, state))
    }
}

impl SealedReading for MeasuredReading {}

#[allow(unsafe_code, reason = "calls the declared allocator")]
impl WalkObserver for MeasuredReading {
    #[inline]
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        // SAFETY: the caller guarantees a live block of the global allocator with this layout.
        unsafe { self.0.block(block) }
    }

    #[inline]
    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        self.0.enclosing(block)
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.0.state
    }

    fn first_visit(&mut self, address: usize) -> bool {
        self.0.first_visit(address)
    }
}

impl Reading for MeasuredReading {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}

/// Any reading, behind a `dyn` boundary. Erasing it again gives the same.
///
/// Its constants are the most that a reading can want. Its methods say what the reading behind it wants, so the walk
/// does not visit plain data for a reading without names.
pub struct ErasedReading<'a> {
    observer: &'a mut dyn WalkObserver,
    wants_names: bool,
    wants_steps: bool,
    merges: bool,
}

impl<'a> ErasedReading<'a> {
    pub(crate) fn new<R: Reading>(reading: &'a mut R) -> Self {
        let (wants_names, wants_steps, merges) =
            (reading.wants_names(), reading.wants_steps(), reading.merges());
        Self { observer: reading.erase(), wants_names, wants_steps, merges }
    }
}

impl fmt::Debug for ErasedReading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErasedReading")
    }
}

impl SealedReading for ErasedReading<'_> {}

#[allow(unsafe_code, reason = "forwards")]
impl WalkObserver for ErasedReading<'_> {
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        // SAFETY: the caller guarantees what the observer requires: the start of a live block of the global allocator,
        // with its layout.
        unsafe { self.observer.block(block) }
    }

    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        self.observer.enclosing(block)
    }

    fn stated(&mut self, bytes: usize) -> usize {
        self.observer.stated(bytes)
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

impl Reading for ErasedReading<'_> {
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

    fn erase(&mut self) -> &mut dyn WalkObserver {
        &mut *self.observer
    }
}
