//! Names of debug information. Each is stored once.

use hashbrown::HashTable;
use std::hash::{BuildHasher as _, RandomState};

use super::types::DebugNameId;

/// The largest length of a name in bytes. Longer names are cut.
pub(super) const LONGEST: usize = 1 << 16;

/// The largest total size of all names in bytes.
pub(super) const MOST_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub(super) struct NameTable {
    text: String,
    ends: Vec<u32>,
    ids: HashTable<u32>,
    hasher: RandomState,
    /// The largest total size of these names in bytes, at most `MOST_BYTES`.
    most: usize,
}

impl NameTable {
    pub(super) fn new(most: usize) -> Self {
        let (ids, hasher) = (HashTable::new(), RandomState::new());
        Self { text: String::new(), ends: Vec::new(), ids, hasher, most: most.min(MOST_BYTES) }
    }

    /// Adds the names of another part of a file, in their order, and adds that part's share of the limit. Returns the
    /// new ids; `None` at the limit.
    pub(super) fn append(&mut self, other: &Self) -> Option<Vec<DebugNameId>> {
        self.most = self.most.saturating_add(other.most).min(MOST_BYTES);
        (0..other.ends.len() as u32).map(|id| self.intern(other.get(DebugNameId(id)))).collect()
    }

    pub(super) fn get(&self, id: DebugNameId) -> &str {
        let index = id.0 as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[index] as usize]
    }

    /// The id of a name; `None` for an unknown name.
    pub(super) fn find(&self, name: &str) -> Option<DebugNameId> {
        let hash = self.hasher.hash_one(name);
        self.ids.find(hash, |id| self.get(DebugNameId(*id)) == name).map(|id| DebugNameId(*id))
    }

    /// The id of a name. Adds the name if it is new. `None` at the limit of bytes.
    pub(super) fn intern(&mut self, name: &str) -> Option<DebugNameId> {
        let hash = self.hasher.hash_one(name);
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        if self.text.len() + name.len() > self.most {
            return None;
        }
        let id = self.ends.len() as u32;
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
        let Self { ids, text, ends, hasher, .. } = self;
        ids.insert_unique(hash, id, |id| {
            let index = *id as usize;
            let start = index.checked_sub(1).map_or(0, |before| ends[before] as usize);
            hasher.hash_one(&text[start..ends[index] as usize])
        });
        Some(DebugNameId(id))
    }
}
