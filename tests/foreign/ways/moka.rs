use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
use moka::sync::Cache;

/// The iterator clones values, so they must be in an `Arc`: otherwise the function would measure the clones.
pub fn measure<K, V, S, R>(cache: &Cache<K, Arc<V>, S>, ops: &mut MallocSizeOfOps<R>) -> usize
where
    K: MallocSizeOf + Eq + Hash + Send + Sync + 'static,
    V: MallocSizeOf + Send + Sync + 'static,
    S: BuildHasher + Clone + Send + Sync + 'static,
    R: Reading,
{
    cache.iter().map(|(key, value)| ops.key(&key) + ops.value(&value)).sum()
}
