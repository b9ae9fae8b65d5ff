//! The engine: all data that the threads share.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::documents::{Document, Documents};
use crate::index::{Index, Posting};
use crate::interner::Interner;
use crate::query_cache::{Answer, Query, QueryCache};
use crate::ranking::{self, Scratch};
use crate::statistics::Statistics;
use crate::words;

/// First reads documents ([`add`](Self::add), [`finish`](Self::finish)), then answers queries on any thread.
#[derive(Debug, Default)]
pub(crate) struct Engine {
    pub(crate) interner: Interner,
    pub(crate) documents: Documents,
    pub(crate) index: Index,
    pub(crate) cache: Arc<QueryCache>,
    pub(crate) statistics: Statistics,
}

impl Engine {
    /// Reads a document.
    pub(crate) fn add(&mut self, path: PathBuf, text: String) {
        let id = self.documents.add(Document::new(path, text));
        for (line, text) in self.documents.get(id).lines() {
            let lower = text.to_ascii_lowercase();
            words::for_each_word(text, |word| {
                let term = self.interner.intern(&lower[word]);
                self.index.add(term, Posting { document: id, line });
            });
        }
    }

    /// Call this when all documents have been read.
    pub(crate) fn finish(&mut self) {
        self.index.finish();
    }

    /// The query for some words.
    pub(crate) fn query(&self, words: &str) -> Result<Query, QueryError> {
        let lower = words.to_ascii_lowercase();
        let mut terms = Vec::new();
        let mut unknown = None;
        words::for_each_word(words, |word| match self.interner.get(&lower[word.clone()]) {
            Some(term) => terms.push(term),
            None => unknown = Some(lower[word].to_owned()),
        });
        match unknown {
            Some(word) => Err(QueryError::UnknownWord(word)),
            None if terms.is_empty() => Err(QueryError::NoWord),
            None => Ok(Query::new(terms)),
        }
    }

    /// Answers a query, and keeps the answer in the cache.
    pub(crate) fn answer(&self, query: &Query, scratch: &mut Scratch) -> Arc<Answer> {
        let cached = self.cache.get(query);
        self.statistics.count(cached.is_some());
        cached.unwrap_or_else(|| {
            self.cache.insert(query, ranking::answer(query, &self.index, &self.documents, scratch))
        })
    }

    /// One line about the documents.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} documents, {:.1} MB of text, {} words, {} postings",
            self.documents.len(),
            self.documents.bytes() as f64 / 1e6,
            self.interner.len(),
            self.index.postings(),
        )
    }
}

/// The reason why words do not make a query.
#[derive(Debug)]
pub(crate) enum QueryError {
    /// The text contains no word.
    NoWord,
    /// No document contains this word.
    UnknownWord(String),
}

impl fmt::Display for QueryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWord => formatter.write_str("no word to search for"),
            Self::UnknownWord(word) => write!(formatter, "no document has the word {word}"),
        }
    }
}
