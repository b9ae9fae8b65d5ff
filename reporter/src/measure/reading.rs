//! What a walk does with the blocks and parts that it finds. A [`Reading`] in the ops decides this, so that one derive
//! serves all purposes.
//!
//! A reading is a type parameter, so that the computed reading compiles to a plain sum, as if written manually. The
//! core of a reading, [`WalkObserver`], is object-safe. Below a `dyn` value, the walk uses only this core.

use core::fmt;

use crate::engine_abi::Marks;

use super::block::{Edge, WalkedBlock};
use super::size_source::SizeSource;
use super::walk_state::WalkState;

/// Only this crate and `heap-graph` have readings, so that a later version can add methods to a walk.
#[diagnostic::on_unimplemented(
    message = "a program cannot add readings, such as `{Self}`",
    label = "readings are sealed",
    note = "use `size_tree` for the bytes by field and type, and the crate `heap-graph` for the blocks themselves"
)]
pub trait SealedReading {}

/// The object-safe core of a reading. The walk calls it for each block and each step.
///
/// It is sealed: only this framework implements it.
pub trait WalkObserver: SealedReading {
    /// Receives a block that starts at `block.pointer`, and returns the bytes to count for it.
    ///
    /// # Safety
    ///
    /// `block.pointer` is the start of a live block of the program's global allocator, allocated
    /// with `block.layout`.
    #[allow(unsafe_code, reason = "an allocator may be asked about the pointer")]
    unsafe fn block(&mut self, block: WalkedBlock) -> usize;

    /// Receives a block that contains the address `block.pointer`, and returns the bytes to count for it.
    ///
    /// Without a table of live blocks, a reading can return only the layout's size.
    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        block.layout.size()
    }

    /// Receives bytes that a value states of itself ([`MallocSizeOfOps::stated`](crate::MallocSizeOfOps::stated)),
    /// and returns the bytes to count for them. Their blocks are unknown.
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

    /// The walk enters a part. Called only if [`Reading::STEPS`] is true.
    fn enter(&mut self, edge: Edge, type_name: fn() -> &'static str) {
        let _ = (edge, type_name);
    }

    /// The walk leaves the part that it entered last.
    fn leave(&mut self) {}

    /// The part that the walk entered last represents `parts` parts. The number may be 0. Called before the walk leaves
    /// the part, and only if [`Reading::MERGES`] is true.
    fn merged(&mut self, parts: u64) {
        let _ = parts;
    }

    /// The walk meets a shared block. `is_first` is true if this is the first time in this collection; then a call of
    /// [`block`](Self::block) or [`enclosing`](Self::enclosing) follows. `address` is the same for every path to the
    /// block. Called only if [`Reading::NAMES`] is true.
    fn shared(&mut self, address: usize, is_first: bool) {
        let _ = (address, is_first);
    }

    /// A pointer that does not own its target points to `address`, which must not be read. Called only if
    /// [`Reading::NAMES`] is true.
    fn pointer(&mut self, address: usize) {
        let _ = address;
    }

    /// The parts that follow are in the last block. Called only if [`Reading::STEPS`] is true.
    fn open_block(&mut self) {}

    /// The contents of the block that was opened last have ended.
    fn close_block(&mut self) {}
}

/// Decides what a walk does with the blocks and parts that it finds: see
/// [`ComputedReading`](crate::measure::ComputedReading) and [`MeasuredReading`](crate::measure::MeasuredReading).
///
/// An impl of [`MallocSizeOf`](crate::MallocSizeOf) is generic over the reading. The trait is sealed.
pub trait Reading: WalkObserver + Sized {
    /// Whether the reading needs the names of fields and types. The walk must then visit plain data too.
    ///
    /// An impl calls [`MallocSizeOfOps::wants_names`](crate::MallocSizeOfOps::wants_names) instead, which also
    /// includes the reading behind an [`ErasedReading`].
    const NAMES: bool;

    /// Whether the walk calls [`WalkObserver::enter`] and the other step methods. A reading may need steps without
    /// [`NAMES`](Self::NAMES): the walk then does not visit each byte of a `Vec<u8>`.
    const STEPS: bool = Self::NAMES;

    /// Whether the walk may merge consecutive parts of one kind into one, with [`WalkObserver::merged`].
    const MERGES: bool = false;

    /// Returns [`NAMES`](Self::NAMES). Only [`ErasedReading`] overrides the method: it returns the value of the reading
    /// behind it.
    #[inline(always)]
    fn wants_names(&self) -> bool {
        Self::NAMES
    }

    /// Returns [`STEPS`](Self::STEPS). [`ErasedReading`] overrides it like [`wants_names`](Self::wants_names).
    #[inline(always)]
    fn wants_steps(&self) -> bool {
        Self::STEPS
    }

    /// Returns [`MERGES`](Self::MERGES). [`ErasedReading`] overrides it like [`wants_names`](Self::wants_names).
    #[inline(always)]
    fn merges(&self) -> bool {
        Self::MERGES
    }

    /// Like [`WalkObserver::enter`], for a known type of reading. The walk keeps the result on its stack and passes it
    /// to the matching [`leave_part`](Self::leave_part).
    #[inline]
    fn enter_part(&mut self, edge: Edge, type_name: fn() -> &'static str) -> usize {
        self.enter(edge, type_name);
        0
    }

    /// Like [`WalkObserver::leave`], with the result of [`enter_part`](Self::enter_part).
    #[inline]
    fn leave_part(&mut self, entered: usize) {
        let _ = entered;
        self.leave();
    }

    /// The object-safe core, for a walk below a `dyn` value.
    fn erase(&mut self) -> &mut dyn WalkObserver;
}

/// Computes bytes from layouts only: the sizes that the program requested. It calls no allocator, and is sound with
/// any global allocator.
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

/// Measures usable bytes with the declared allocator, including slop.
///
/// For hash tables, B-tree nodes and list nodes, Rust gives access only to the inside of a block. The reading
/// computes the size of such a block, unless an engine of DMD has the block.
#[derive(Debug)]
pub struct MeasuredReading(SizeSource);

impl MeasuredReading {
    /// The reading of the program's allocator; `None` if [`global_allocator!`](crate::global_allocator) has not
    /// declared one.
    pub fn new() -> Option<Self> {
        let reading = Self::best(None, WalkState::default());
        (!reading.0.is_computed()).then_some(reading)
    }

    /// The most exact reading that is available. Without a declared allocator and without an engine it uses layouts.
    ///
    /// With `marks`, it is the reading of a report under `explicit/` while an engine of DMD is connected. It marks
    /// every block as reported, and counts the engine's size, even for a block whose start is not accessible.
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

/// Any reading, behind a `dyn` boundary. Erasing it again returns the same reading.
///
/// Its constants allow all features of readings. Its methods return the values of the reading behind it, so the walk
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
        // SAFETY: the caller guarantees the precondition of the observer's method: the start of a live block of the
        // global allocator, with the block's layout.
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
