//! Owns all answers so far.
//!
//! The cache never drops an answer. Such caches often cause memory growth that is hard to explain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use memory_reporter::MallocSizeOf;

use crate::documents::{DocumentId, Line};
use crate::interner::TermId;

/// The words of a query, sorted and without duplicates, so that equal queries are equal keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, MallocSizeOf)]
pub(crate) struct Query(Box<[TermId]>);

impl Query {
    /// Makes a query for documents that contain all the words.
    pub(crate) fn new(mut terms: Vec<TermId>) -> Self {
        terms.sort_unstable();
        terms.dedup();
        Self(terms.into())
    }

    /// The words of the query.
    pub(crate) fn terms(&self) -> &[TermId] {
        &self.0
    }
}

/// A document that contains all the words.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Hit {
    pub(crate) document: DocumentId,
    /// The line that contains the most words of the query; the first such line if there are several.
    pub(crate) line: Line,
    /// This line, and some lines around it.
    pub(crate) snippet: String,
}

/// The result of a query.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Answer {
    /// The number of documents that contain all the words.
    pub(crate) documents: usize,
    /// The best documents, best first.
    pub(crate) hits: Vec<Hit>,
}

/// Answers by query; all threads share them.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct QueryCache {
    answers: Mutex<HashMap<Query, Arc<Answer>>>,
}

impl QueryCache {
    /// The cached answer to a query.
    pub(crate) fn get(&self, query: &Query) -> Option<Arc<Answer>> {
        self.lock().get(query).map(Arc::clone)
    }

    /// Adds an answer, unless another thread has already added an answer to this query. Returns the answer in the
    /// cache.
    pub(crate) fn insert(&self, query: &Query, answer: Answer) -> Arc<Answer> {
        Arc::clone(self.lock().entry(query.clone()).or_insert_with(|| Arc::new(answer)))
    }

    /// The number of cached answers.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Query, Arc<Answer>>> {
        self.answers.lock().expect("no thread panics while it holds the cache")
    }
}
