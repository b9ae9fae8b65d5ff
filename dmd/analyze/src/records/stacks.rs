//! Stacks for the comparison of records: cut, without allocator frames, and each stored once.

use core::ops::Range;
use std::hash::{BuildHasher as _, RandomState};

use rustc_hash::FxHashMap;

use crate::dump::FrameTextId;

/// The id of a stack. Equal stacks have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CutStackId(u32);

impl CutStackId {
    /// The id that marks a missing report.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default)]
pub(crate) struct CutStackTable {
    frames: Vec<FrameTextId>,
    ranges: Vec<Range<u32>>,
    /// The first stack with each hash. `next` links to further stacks.
    by_hash: FxHashMap<u64, u32>,
    /// The next stack with the same hash.
    next: FxHashMap<u32, u32>,
    /// Randomly seeded, so that the author of a dump cannot provoke collisions.
    hasher: RandomState,
}

impl CutStackTable {
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The ids of all stacks.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CutStackId> + use<> {
        (0..self.ranges.len() as u32).map(CutStackId)
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn get(&self, id: CutStackId) -> &[FrameTextId] {
        match self.ranges.get(id.0 as usize) {
            Some(range) => &self.frames[range.start as usize..range.end as usize],
            None => &[],
        }
    }

    /// The id of a stack. Adds a new stack.
    pub(crate) fn add(&mut self, frames: &[FrameTextId]) -> CutStackId {
        let id = self.ranges.len() as u32;
        let hash = self.hasher.hash_one(frames);
        if let Some(&first) = self.by_hash.get(&hash) {
            let mut at = first;
            loop {
                if self.get(CutStackId(at)) == frames {
                    return CutStackId(at);
                }
                match self.next.get(&at) {
                    Some(&next) => at = next,
                    None => break,
                }
            }
            self.next.insert(at, id);
        } else {
            self.by_hash.insert(hash, id);
        }
        let start = self.frames.len() as u32;
        self.frames.extend_from_slice(frames);
        self.ranges.push(start..self.frames.len() as u32);
        CutStackId(id)
    }
}
