//! Texts of frames, each kept once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use rustc_hash::FxHashMap;

/// A text of a frame; equal texts have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameId(pub(crate) u32);

impl FrameId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default)]
pub(crate) struct Texts {
    all: String,
    /// Where each text ends.
    ends: Vec<usize>,
    /// By hash; a text whose hash is taken by another is found in `clashing`.
    by_hash: FxHashMap<u64, FrameId>,
    clashing: HashMap<Box<str>, FrameId>,
    /// Whoever made a dump cannot foresee hashes.
    hasher: RandomState,
}

impl Texts {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, id: FrameId) -> &str {
        let index = id.index();
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[index]]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.get(FrameId(index as u32)))
    }

    /// The id of a text, a new one if it was not there.
    pub(crate) fn add(&mut self, text: &str) -> FrameId {
        let hash = self.hasher.hash_one(text);
        let next = FrameId(self.ends.len() as u32);
        match self.by_hash.get(&hash) {
            None => {
                self.by_hash.insert(hash, next);
            }
            Some(&known) if self.get(known) == text => return known,
            Some(_) => {
                if let Some(&known) = self.clashing.get(text) {
                    return known;
                }
                self.clashing.insert(text.into(), next);
            }
        }
        self.all.push_str(text);
        self.ends.push(self.all.len());
        next
    }
}
