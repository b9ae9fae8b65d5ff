//! The state of a walk, apart from its bytes: the shared blocks that it has counted, and the parts that it could not
//! measure.
//!
//! In a collection, each reporter starts from the blocks that earlier reporters counted (`counted_before`, which does
//! not change here) and records its own blocks. The driver adds a reporter's blocks to `counted_before` only if the
//! reporter succeeds: a reporter whose reports are left out has counted no blocks. A report that panics counts no
//! blocks either, even if the reporter catches the panic.

use std::sync::Arc;

use hashbrown::HashSet;
use memory_report::{SkipReason, SkippedPart};

use crate::allocator::tags;
use crate::engine_abi::{Marks, PointerFault};

use super::block::WalkedBlock;
use super::tagged_bytes::TaggedBytes;

pub(crate) type Addresses = HashSet<usize>;

/// The shared blocks that one walk or one reporter has counted, and the parts that it has skipped.
#[derive(Debug, Default)]
pub struct WalkState {
    counted_before: Option<Arc<Addresses>>,
    counted: Addresses,
    /// The addresses in `counted` that the current report has added.
    added: Vec<usize>,
    skipped: Vec<SkippedPart>,
    /// The bytes that values have stated of themselves in the current report, by type.
    stated: Option<Box<StatedTypes>>,
    /// With an engine: the sum of the blocks that the current report has named, in bytes.
    named: usize,
    /// The blocks with a tag that reports have counted.
    tagged: TaggedBytes,
    /// With an engine: the address of the shared block that the walk should pass to `block` or `enclosing` next.
    awaited: Option<usize>,
    /// With an engine: the pointers of the current report that do not belong to a block.
    faults: Vec<FaultyPointers>,
}

/// Pointers to values of one type that do not belong to a block.
#[derive(Clone, Debug)]
pub(crate) struct FaultyPointers {
    pub(crate) fault: PointerFault,
    pub(crate) type_name: &'static str,
    pub(crate) times: usize,
}

/// Types, and the bytes that their values have stated of themselves. `WalkState` contains only a pointer to this list,
/// since most walks find no such types.
#[derive(Debug, Default)]
struct StatedTypes(Vec<(&'static str, usize)>);

/// The element of `counted` which records that an engine marked the shared block at this address. No block has such a
/// high address.
const fn marked(address: usize) -> usize {
    address ^ 1 << (usize::BITS - 2)
}

impl WalkState {
    pub(crate) fn after(counted_before: &Arc<Addresses>) -> Self {
        let counted_before = (!counted_before.is_empty()).then(|| Arc::clone(counted_before));
        Self { counted_before, ..Self::default() }
    }

    /// Whether the walk meets this shared block for the first time. Records the block.
    pub(crate) fn first_visit(&mut self, address: usize) -> bool {
        if let Some(before) = &self.counted_before
            && before.contains(&address)
        {
            return false;
        }
        self.count(address)
    }

    fn count(&mut self, address: usize) -> bool {
        let is_new = self.counted.insert(address);
        if is_new {
            self.added.push(address);
        }
        is_new
    }

    /// Starts another report. The blocks counted so far stay counted.
    pub(crate) fn begin_report(&mut self) {
        self.added.clear();
        self.tagged.end_report();
        self.stated = None;
        self.named = 0;
        self.faults.clear();
    }

    /// Drops the current report: its blocks are not counted. The parts that it skipped stay recorded.
    pub(crate) fn forget_report(&mut self) {
        for address in self.added.drain(..) {
            self.counted.remove(&address);
        }
        self.tagged.forget_report();
        self.named = 0;
    }

    /// Counts this block for its tag. The block's pointer is its start.
    #[inline]
    pub(crate) fn note_tag(&mut self, block: &WalkedBlock) {
        if tags::in_use() {
            self.tagged.add_found(tags::at(block.pointer));
        }
    }

    /// Counts `bytes` of this block for its tag. The block's pointer is an address inside.
    #[inline]
    pub(crate) fn note_tag_around(&mut self, block: &WalkedBlock, bytes: usize) {
        if tags::in_use() {
            self.tagged.add_part(tags::around(block.pointer, block.layout.size()), bytes);
        }
    }

    /// With an engine: adds a block of `bytes` bytes that the walk has found by a pointer to it or into it. With a null
    /// pointer, adds no block.
    #[inline]
    pub(crate) fn note_named(&mut self, block: &WalkedBlock, bytes: usize) {
        if !block.pointer.is_null() {
            self.named = self.named.saturating_add(bytes);
        }
    }

    /// With an engine: the sum of the blocks that the current report has named, in bytes.
    pub(crate) fn named(&self) -> usize {
        self.named
    }

    /// Like [`first_visit`](Self::first_visit), but with an engine of DMD. The engine detects whether the counted block
    /// still exists: if the block at the address has no mark, it has replaced a block that was marked and freed.
    pub(crate) fn first_visit_with(&mut self, address: usize, marks: Marks) -> bool {
        let is_first = self.first_visit(address)
            || self.is_counted(marked(address))
                && marks.is_unreported(core::ptr::without_provenance(address));
        self.awaited = is_first.then_some(address);
        is_first
    }

    /// Records that the engine has marked this block.
    pub(crate) fn note_marked(&mut self, block: &WalkedBlock) {
        // Check that this is the awaited shared block: an impl may have called `block` only for another block.
        if let Some(address) = self.awaited.take()
            && address.wrapping_sub(block.pointer.addr()).wrapping_add(1) <= block.layout.size()
        {
            self.count(marked(address));
        }
    }

    /// Records that the engine has no block for this pointer. Returns 0, the bytes to count.
    #[cold]
    pub(crate) fn note_fault(&mut self, fault: PointerFault, block: &WalkedBlock) -> usize {
        let type_name = (block.type_name)();
        match self.faults.iter_mut().find(|known| known.fault == fault && known.type_name == type_name) {
            Some(known) => known.times += 1,
            None => self.faults.push(FaultyPointers { fault, type_name, times: 1 }),
        }
        0
    }

    /// Returns and clears the pointers of the current report that do not belong to a block.
    pub(crate) fn take_faults(&mut self) -> Vec<FaultyPointers> {
        core::mem::take(&mut self.faults)
    }

    fn is_counted(&self, address: usize) -> bool {
        self.counted.contains(&address)
            || self.counted_before.as_ref().is_some_and(|before| before.contains(&address))
    }

    /// Records bytes that a value of this type has stated of itself.
    pub(crate) fn note_stated(&mut self, type_name: &'static str, bytes: usize) {
        let StatedTypes(types) = &mut **self.stated.get_or_insert_default();
        match types.iter_mut().find(|(known, _)| *known == type_name) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => types.push((type_name, bytes)),
        }
    }

    /// Returns and clears the bytes that values have stated of themselves in the current report, by type.
    pub(crate) fn take_stated(&mut self) -> Vec<(&'static str, usize)> {
        self.stated.take().map(|stated| stated.0).unwrap_or_default()
    }

    #[cold]
    pub(crate) fn skip(&mut self, reason: SkipReason, type_name: &'static str) {
        self.note(SkippedPart::new(reason, type_name));
    }

    /// The parts that could not be measured so far.
    pub fn skipped(&self) -> &[SkippedPart] {
        &self.skipped
    }

    pub(crate) fn add_skipped(&mut self, other: Self) {
        other.skipped.into_iter().for_each(|part| self.note(part));
    }

    fn note(&mut self, part: SkippedPart) {
        let known =
            self.skipped.iter_mut().find(|s| s.reason == part.reason && s.type_name == part.type_name);
        match known {
            Some(skipped) => skipped.times += part.times,
            None => self.skipped.push(part),
        }
    }

    pub(crate) fn into_parts(self) -> (Addresses, TaggedBytes, Vec<SkippedPart>) {
        (self.counted, self.tagged, self.skipped)
    }
}
