//! Owns the inverted index: for each word, the lines that contain it.

use memory_reporter::MallocSizeOf;

use crate::documents::{DocumentId, Line};
use crate::interner::TermId;

/// A line that contains a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, MallocSizeOf)]
pub(crate) struct Posting {
    pub(crate) document: DocumentId,
    pub(crate) line: Line,
}

/// The lines of one word, without duplicates, sorted by document and line.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct PostingList {
    postings: Vec<Posting>,
    /// The number of documents that contain the word.
    documents: u32,
}

impl PostingList {
    /// The lines of the word.
    pub(crate) fn postings(&self) -> &[Posting] {
        &self.postings
    }

    /// The number of documents that contain the word.
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    /// The lines of one document.
    pub(crate) fn within(&self, document: DocumentId) -> &[Posting] {
        let start = self.postings.partition_point(|posting| posting.document < document);
        let lines = &self.postings[start..];
        &lines[..lines.partition_point(|posting| posting.document == document)]
    }

    fn add(&mut self, posting: Posting) {
        let last = self.postings.last();
        if last == Some(&posting) {
            return;
        }
        self.documents += u32::from(last.is_none_or(|last| last.document != posting.document));
        self.postings.push(posting);
    }
}

/// The lines of every word.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct Index {
    /// The lists of lines, indexed by [`TermId`].
    lists: Vec<PostingList>,
    postings: usize,
}

impl Index {
    /// Adds a line of a word. The caller must pass documents and their lines in ascending order.
    pub(crate) fn add(&mut self, term: TermId, posting: Posting) {
        if self.lists.len() <= term.index() {
            self.lists.resize_with(term.index() + 1, PostingList::default);
        }
        self.lists[term.index()].add(posting);
    }

    /// Frees the spare capacity of all lists.
    pub(crate) fn finish(&mut self) {
        self.lists.shrink_to_fit();
        for list in &mut self.lists {
            list.postings.shrink_to_fit();
        }
        self.postings = self.lists.iter().map(|list| list.postings.len()).sum();
    }

    /// The lines of a word.
    pub(crate) fn list(&self, term: TermId) -> &PostingList {
        &self.lists[term.index()]
    }

    /// The number of postings of all words.
    pub(crate) fn postings(&self) -> usize {
        self.postings
    }
}
