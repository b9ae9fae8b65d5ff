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
