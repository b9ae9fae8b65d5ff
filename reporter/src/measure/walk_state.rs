//! The state of a walk beside its bytes: the shared blocks that it has counted and the parts that it could not
//! measure.
//!
//! In a collection each reporter starts from the blocks that earlier reporters counted (`counted_before`, which nothing
//! here changes) and collects its own. The driver adds these to the former only if the reporter ended well: a reporter
//! whose reports are left out has counted nothing. Neither has a report that a panic ends, even if the reporter catches
//! that panic.

use std::sync::Arc;

use hashbrown::HashSet;
use memory_report::{SkipReason, SkippedPart};

use crate::allocator::tags;
use crate::engine_abi::{Marks, PointerFault};

use super::block::WalkedBlock;
use super::tagged_bytes::TaggedBytes;

pub(crate) type Addresses = HashSet<usize>;

/// Shared blocks counted and parts skipped, of one walk or of one reporter.
#[derive(Debug, Default)]
pub struct WalkState {
    counted_before: Option<Arc<Addresses>>,
    counted: Addresses,
    /// The part of `counted` that the current report has added.
    added: Vec<usize>,
    skipped: Vec<SkippedPart>,
    /// The bytes that values of each type have stated of themselves in the current report.
    stated: Option<Box<StatedTypes>>,
    /// With an engine: the bytes of the blocks that the current report has named.
    named: usize,
    /// Blocks with a tag that reports have counted.
    tagged: TaggedBytes,
    /// With an engine: the shared block whose `block` call comes next.
    awaited: Option<usize>,
    /// With an engine: the pointers of the current report that are not those of blocks.
    faults: Vec<FaultyPointers>,
}

/// Pointers to values of one type that are not those of blocks.
#[derive(Clone, Debug)]
pub(crate) struct FaultyPointers {
    pub(crate) fault: PointerFault,
    pub(crate) type_name: &'static str,
    pub(crate) times: usize,
}

/// Types, and the bytes that their values have stated of themselves. Most walks have none, and stay small.
#[derive(Debug, Default)]
struct StatedTypes(Vec<(&'static str, usize)>);

/// The address that stands for "an engine marked the shared block counted at this address". No block lies so high.
const fn marked(address: usize) -> usize {
    address ^ 1 << (usize::BITS - 2)
}

impl WalkState {
    pub(crate) fn after(counted_before: &Arc<Addresses>) -> Self {
        let counted_before = (!counted_before.is_empty()).then(|| Arc::clone(counted_before));
        Self { counted_before, ..Self::default() }
    }

    /// Whether the walk meets this shared block for the first time; remembers it.
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

    /// Begins another report. The blocks counted so far stay counted.
    pub(crate) fn begin_report(&mut self) {
        self.added.clear();
        self.tagged.end_report();
        self.stated = None;
        self.named = 0;
        self.faults.clear();
    }

    /// Drops the current report: it has counted nothing. The parts that it skipped stay recorded.
    pub(crate) fn forget_report(&mut self) {
        for address in self.added.drain(..) {
            self.counted.remove(&address);
        }
        self.tagged.forget_report();
        self.named = 0;
    }

    /// The walk counts this block, which its pointer is the start of.
    #[inline]
    pub(crate) fn note_tag(&mut self, block: &WalkedBlock) {
        if tags::in_use() {
            self.tagged.add_found(tags::at(block.pointer));
        }
    }

    /// The walk counts `bytes` of this block, which has its pointer inside.
    #[inline]
    pub(crate) fn note_tag_around(&mut self, block: &WalkedBlock, bytes: usize) {
        if tags::in_use() {
            self.tagged.add_part(tags::around(block.pointer, block.layout.size()), bytes);
        }
    }

    /// With an engine: the walk has found a block of `bytes` bytes by a pointer to it or into it. A null pointer names
    /// no block.
    #[inline]
    pub(crate) fn note_named(&mut self, block: &WalkedBlock, bytes: usize) {
        if !block.pointer.is_null() {
            self.named = self.named.saturating_add(bytes);
        }
    }

    /// With an engine: the bytes of the blocks that the current report has named.
    pub(crate) fn named(&self) -> usize {
        self.named
    }

    /// As [`first_visit`](Self::first_visit) with an engine of DMD, which knows whether the counted block is still
    /// there: a block without a mark has taken the place of one that was marked and freed.
    pub(crate) fn first_visit_with(&mut self, address: usize, marks: Marks) -> bool {
        let is_first = self.first_visit(address)
            || self.is_counted(marked(address))
                && marks.is_unreported(core::ptr::without_provenance(address));
        self.awaited = is_first.then_some(address);
        is_first
    }

    /// The engine has marked this block.
    pub(crate) fn note_marked(&mut self, block: &WalkedBlock) {
        // Only if it is the shared block: an impl may not have called `block` for that.
        if let Some(address) = self.awaited.take()
            && address.wrapping_sub(block.pointer.addr()).wrapping_add(1) <= block.layout.size()
        {
            self.count(marked(address));
        }
    }

    /// The engine knows that this pointer is not that of a block. Such a block counts 0 bytes.
    #[cold]
    pub(crate) fn note_fault(&mut self, fault: PointerFault, block: &WalkedBlock) -> usize {
        let type_name = (block.type_name)();
        match self.faults.iter_mut().find(|known| known.fault == fault && known.type_name == type_name) {
            Some(known) => known.times += 1,
            None => self.faults.push(FaultyPointers { fault, type_name, times: 1 }),
        }
        0
    }

    /// The pointers of the current report that are not those of blocks.
    pub(crate) fn take_faults(&mut self) -> Vec<FaultyPointers> {
        core::mem::take(&mut self.faults)
    }

    fn is_counted(&self, address: usize) -> bool {
        self.counted.contains(&address)
            || self.counted_before.as_ref().is_some_and(|before| before.contains(&address))
    }

    /// A value of this type has stated bytes of itself.
    pub(crate) fn note_stated(&mut self, type_name: &'static str, bytes: usize) {
        let StatedTypes(types) = &mut **self.stated.get_or_insert_default();
        match types.iter_mut().find(|(known, _)| *known == type_name) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => types.push((type_name, bytes)),
        }
    }

    /// The bytes that values of each type have stated of themselves in the current report.
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
