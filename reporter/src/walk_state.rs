//! What a walk remembers beside its bytes: which shared blocks it has counted and which parts it
//! could not look at.
//!
//! In a collection each reporter starts from the blocks that earlier reporters counted
//! (`counted_before`, never written here) and collects its own. The driver adds them to the
//! former only if the reporter ended well: a reporter whose reports are dropped has counted
//! nothing. So has a report that a panic ends, which the reporter may catch.

use std::sync::Arc;

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use crate::bridge::Marks;
use crate::reading::Block;
use crate::skipped::{SkipReason, Skipped};

pub(crate) type Addresses = HashSet<usize, FxBuildHasher>;

/// Shared blocks counted and parts skipped, of one walk or of one reporter.
#[derive(Debug, Default)]
pub struct WalkState {
    counted_before: Option<Arc<Addresses>>,
    counted: Addresses,
    /// Of `counted`, what the report under way has added.
    added: Vec<usize>,
    skipped: Vec<Skipped>,
    /// With an engine: the shared block that is to be told next.
    awaited: Option<usize>,
}

/// Of an address, the one that stands for "an engine marked the shared block that was counted here": no
/// block lies so high.
const fn marked(address: usize) -> usize {
    address ^ 1 << (usize::BITS - 2)
}

impl WalkState {
    pub(crate) fn after(counted_before: &Arc<Addresses>) -> Self {
        let counted_before = (!counted_before.is_empty()).then(|| Arc::clone(counted_before));
        Self { counted_before, ..Self::default() }
    }

    /// Whether this shared block is met for the first time; remembers it.
    #[inline]
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

    /// Another report begins: what was counted so far stays counted.
    pub(crate) fn begin_report(&mut self) {
        self.added.clear();
    }

    /// The report under way is dropped, so it has counted nothing. What it could not look at stays known.
    pub(crate) fn forget_report(&mut self) {
        for address in self.added.drain(..) {
            self.counted.remove(&address);
        }
    }

    /// As [`first_visit`](Self::first_visit) with an engine of DMD, which knows whether the block that was
    /// counted is still there: one without a mark has taken the place of one that was marked and freed.
    pub(crate) fn first_visit_with(&mut self, address: usize, marks: Marks) -> bool {
        let is_first = self.first_visit(address)
            || self.is_counted(marked(address))
                && marks.is_unreported(core::ptr::without_provenance(address));
        self.awaited = is_first.then_some(address);
        is_first
    }

    /// The engine has marked this block.
    pub(crate) fn note_marked(&mut self, block: &Block) {
        // Only if it is the shared one: an impl may have told none for that.
        if let Some(address) = self.awaited.take()
            && address.wrapping_sub(block.pointer.addr()).wrapping_add(1) <= block.layout.size()
        {
            self.count(marked(address));
        }
    }

    fn is_counted(&self, address: usize) -> bool {
        self.counted.contains(&address)
            || self.counted_before.as_ref().is_some_and(|before| before.contains(&address))
    }

    #[cold]
    pub(crate) fn skip(&mut self, reason: SkipReason, type_name: &'static str) {
        self.note(Skipped { reason, type_name, times: 1 });
    }

    /// What could not be looked at so far.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    pub(crate) fn add_skipped(&mut self, other: Self) {
        other.skipped.into_iter().for_each(|part| self.note(part));
    }

    fn note(&mut self, part: Skipped) {
        let known =
            self.skipped.iter_mut().find(|s| s.reason == part.reason && s.type_name == part.type_name);
        match known {
            Some(skipped) => skipped.times += part.times,
            None => self.skipped.push(part),
        }
    }

    pub(crate) fn into_parts(self) -> (Addresses, Vec<Skipped>) {
        (self.counted, self.skipped)
    }
}
