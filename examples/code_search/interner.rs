//! Owns each distinct word once.

use std::collections::HashMap;
use std::sync::Arc;

use memory_reporter::MallocSizeOf;

/// The number of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, MallocSizeOf)]
pub(crate) struct TermId(u32);

impl TermId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Maps words to numbers, and back.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct Interner {
    /// Shares the texts with `words`.
    ids: HashMap<Arc<str>, TermId>,
    words: Vec<Arc<str>>,
}

impl Interner {
    /// The number of a word; a new word gets a new number.
    pub(crate) fn intern(&mut self, word: &str) -> TermId {
        if let Some(&id) = self.ids.get(word) {
            return id;
        }
        let id = TermId(u32::try_from(self.words.len()).expect("limited text has fewer words than 2^32"));
        let word: Arc<str> = word.into();
        self.words.push(Arc::clone(&word));
        self.ids.insert(word, id);
        id
    }

    /// The number of a word; `None` if the word is unknown.
    pub(crate) fn get(&self, word: &str) -> Option<TermId> {
        self.ids.get(word).copied()
    }

    /// The word with this number.
    pub(crate) fn word(&self, id: TermId) -> &str {
        &self.words[id.index()]
    }

    /// The numbers of all words, in ascending order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TermId> {
        (0..).map(TermId).take(self.words.len())
    }

    /// The number of distinct words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }
}
