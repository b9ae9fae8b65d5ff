//! The counters of the engine.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that all threads share.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    answered: AtomicU64,
    cache_hits: AtomicU64,
}

impl Statistics {
    /// Counts a query.
    pub(crate) fn count(&self, from_cache: bool) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.cache_hits.fetch_add(u64::from(from_cache), Ordering::Relaxed);
    }

    /// The number of queries answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// The number of queries that the cache answered.
    pub(crate) fn cache_hits(&self) -> u64 {
        self.cache_hits.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} queries answered, {} of them from the cache",
            self.answered(),
            self.cache_hits()
        )
    }
}
