use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use memory_reporter::tags::Tag;
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
use moka::future::Cache;

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

/// The tag counts the tables of the cache, too. It does not count the memory that the function above reports.
pub async fn insert<V: Send + Sync + 'static>(cache: &Cache<u32, Arc<V>>, key: u32, value: Arc<V>) {
    Tag::new("explicit/cache-tables").future(cache.insert(key, value)).await;
}
