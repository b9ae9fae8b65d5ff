//! `dashmap`: exact; `DashSet` shows nothing without waiting for its locks and is opaque.

use core::alloc::Layout;
use core::hash::{BuildHasher, Hash};

use dashmap::{DashMap, DashSet, ReadOnlyView};

use crate::impls::opaque::opaque;
use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

opaque!([K, S] DashSet<K, S>, [K, V, S] ReadOnlyView<K, V, S>);

/// A shard that is being written to is recorded as not seen.
impl<K, V, S> MallocSizeOf for DashMap<K, V, S>
where
    K: MallocSizeOf + Eq + Hash,
    V: MallocSizeOf,
    S: BuildHasher + Clone,
{
    #[allow(unsafe_code, reason = "names the map's blocks and goes over its raw tables")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let shards = self.shards();
        // SAFETY: the shards are the `Box<[_]>` that `into_shards` gives back: its block, with their
        // layout.
        let mut sum = unsafe { ops.block(shards.as_ptr(), Layout::for_value(shards)) };
        for shard in shards {
            let Some(table) = shard.try_read() else {
                sum += ops.skip::<Self>(SkipReason::Locked);
                continue;
            };
            let (start, layout) = table.allocation_info();
            // SAFETY: the table tells its block, or a layout without size if it has none.
            sum += unsafe { ops.block(start.as_ptr(), layout) };
            if !K::NEEDS_WALK && !V::NEEDS_WALK && !ops.wants_names() {
                continue;
            }
            sum += ops.contents(|ops| {
                // SAFETY: the table lives and is not changed while its lock is held.
                let buckets = unsafe { table.iter() };
                buckets
                    .map(|bucket| {
                        // SAFETY: the bucket is full, and nobody writes to it.
                        let (key, value) = unsafe { bucket.as_ref() };
                        ops.key(key) + ops.value(value.get())
                    })
                    .sum()
            });
        }
        sum
    }
}
