//! Owns all answers so far.
//!
//! The cache never drops an answer: a common cause of memory that nobody can explain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use memory_reporter::MallocSizeOf;

use crate::documents::{DocumentId, Line};
use crate::interner::TermId;

/// The words of a query: sorted, each once, so that equal queries are equal keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, MallocSizeOf)]
pub(crate) struct Query(Box<[TermId]>);

impl Query {
    /// Makes a query for documents that have all the words.
    pub(crate) fn new(mut terms: Vec<TermId>) -> Self {
        terms.sort_unstable();
        terms.dedup();
        Self(terms.into())
    }

    /// Its words.
    pub(crate) fn terms(&self) -> &[TermId] {
        &self.0
    }
}

/// A document that has all the words.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Hit {
    pub(crate) document: DocumentId,
    /// The first line that has the most words.
    pub(crate) line: Line,
    /// That line, and some around it.
    pub(crate) snippet: String,
}

/// The result of a query.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Answer {
    /// The number of documents that have all the words.
    pub(crate) documents: usize,
    /// The best of these, best first.
    pub(crate) hits: Vec<Hit>,
}

/// Answers by query, shared by all threads.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct QueryCache {
    answers: Mutex<HashMap<Query, Arc<Answer>>>,
}

impl QueryCache {
    /// The cached answer to a query.
    pub(crate) fn get(&self, query: &Query) -> Option<Arc<Answer>> {
        self.lock().get(query).map(Arc::clone)
    }

    /// Keeps an answer, unless another thread has already added one to this query.
    pub(crate) fn insert(&self, query: &Query, answer: Answer) -> Arc<Answer> {
        Arc::clone(self.lock().entry(query.clone()).or_insert_with(|| Arc::new(answer)))
    }

    /// The number of cached answers.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Query, Arc<Answer>>> {
        self.answers.lock().expect("nothing panics while it holds the cache")
    }
}
