//! Texts, each stored once.

use memory_report::TextPool;

/// The index of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoredTextId(pub(crate) u32);

/// Texts, each with an id.
#[derive(Debug, Default)]
pub(crate) struct ProfileTexts(TextPool);

impl ProfileTexts {
    pub(crate) fn get(&self, id: StoredTextId) -> &str {
        self.0.get(id.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The id of a text; `None` if the text is not stored.
    pub(crate) fn find(&self, text: &str) -> Option<StoredTextId> {
        self.0.find(text).map(StoredTextId)
    }

    /// The id of a text. Adds the text if it is not stored yet.
    pub(crate) fn id(&mut self, text: &str) -> StoredTextId {
        StoredTextId(self.0.intern(text).expect("a profile has fewer than 2^32 texts"))
    }

    /// The sorted texts, and the new id for each old id.
    pub(crate) fn sorted(&self) -> (Self, Vec<StoredTextId>) {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_unstable_by_key(|id| self.0.get(*id));
        let mut sorted = Self::default();
        let mut new = vec![StoredTextId(0); order.len()];
        for old in order {
            new[old as usize] = sorted.id(self.0.get(old));
        }
        (sorted, new)
    }
}
