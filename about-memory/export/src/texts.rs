//! Texts, each stored once.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

/// The index of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoredTextId(pub(crate) u32);

/// Texts, each with an id.
#[derive(Debug, Default)]
pub(crate) struct ProfileTexts {
    all: String,
    ends: Vec<usize>,
}

impl ProfileTexts {
    pub(crate) fn get(&self, id: StoredTextId) -> &str {
        let index = id.0 as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[index]]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The id of a text; `None` if the text is not stored. The texts must be sorted.
    pub(crate) fn find(&self, text: &str) -> Option<StoredTextId> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(StoredTextId(middle as u32)).cmp(text) {
                core::cmp::Ordering::Equal => return Some(StoredTextId(middle as u32)),
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    /// The sorted texts, and for each old id the new one.
    pub(crate) fn sorted(&self) -> (Self, Vec<StoredTextId>) {
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by_key(|id| self.get(StoredTextId(*id)));
        let mut sorted = Self { all: String::with_capacity(self.all.len()), ends: Vec::new() };
        let mut new = vec![StoredTextId(0); order.len()];
        for (rank, old) in order.into_iter().enumerate() {
            sorted.push(self.get(StoredTextId(old)));
            new[old as usize] = StoredTextId(rank as u32);
        }
        (sorted, new)
    }
}

/// Gives equal texts equal ids.
#[derive(Debug, Default)]
pub(crate) struct TextInterner {
    pub(crate) texts: ProfileTexts,
    /// The ids with their hashes, so that a growing table does not read the texts.
    ids: HashTable<(u64, StoredTextId)>,
    /// Randomly seeded, so that the author of an input cannot provoke collisions.
    hasher: RandomState,
}

impl TextInterner {
    pub(crate) fn id(&mut self, text: &str) -> StoredTextId {
        let hash = self.hasher.hash_one(text);
        if let Some((_, known)) = self.ids.find(hash, |(of, id)| *of == hash && self.texts.get(*id) == text) {
            return *known;
        }
        let next = StoredTextId(self.texts.ends.len() as u32);
        self.texts.push(text);
        self.ids.insert_unique(hash, (hash, next), |(hash, _)| *hash);
        next
    }
}
