use std::hash::Hash;
use std::sync::Arc;

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
use quick_cache::sync::Cache;

/// The iterator clones values, so they must be in an `Arc`: otherwise the function would measure the clones.
pub fn measure<K, V, R>(cache: &Cache<K, Arc<V>>, ops: &mut MallocSizeOfOps<R>) -> usize
where
    K: Clone + Eq + Hash,
    V: MallocSizeOf,
    R: Reading,
{
    let tables = ops.stated(cache, cache.memory_used().total());
    tables + cache.iter().map(|(_, value)| ops.value(&value)).sum::<usize>()
}
