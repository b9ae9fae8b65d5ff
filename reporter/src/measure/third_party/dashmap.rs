//! `dashmap`: exact if the program enables dashmap's feature `raw-api`. Without the feature, a `DashMap` is opaque.
//! `DashSet` and `ReadOnlyView` are always opaque. A walk of a set, or of a map without `raw-api`, would have to wait
//! for locks.

#[allow(dead_code, reason = "with `raw-api` the methods of `DashMap` take precedence")]
mod without_raw_api;

use core::alloc::Layout;
use core::hash::{BuildHasher, Hash};

use dashmap::{DashMap, DashSet, ReadOnlyView};
use memory_report::SkipReason;

use crate::measure::impls::opaque::opaque;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::{MallocSizeOfOps, total};
use crate::measure::reading::Reading;

#[allow(unused_imports, reason = "with `raw-api` the method of `DashMap` takes precedence")]
use without_raw_api::WithoutRawApi;

opaque!([K, S] DashSet<K, S>, [K, V, S] ReadOnlyView<K, V, S>);

/// Records a shard as skipped while another thread writes to it.
impl<K, V, S> MallocSizeOf for DashMap<K, V, S>
where
    K: MallocSizeOf + Eq + Hash,
    V: MallocSizeOf,
    S: BuildHasher + Clone,
{
    #[allow(unsafe_code, reason = "passes blocks of the map to `ops.block`, and reads its raw tables")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let shards = self.shards();
        // A map has at least two shards. An empty slice means that the map does not show its shards.
        if shards.is_empty() {
            return ops.skip::<Self>(SkipReason::Opaque);
        }
        // SAFETY: the shards are the `Box<[_]>` that `into_shards` returns, so they start a block with their layout.
        let mut sum = unsafe { ops.block(shards.as_ptr(), Layout::for_value(shards)) };
        for shard in shards {
            let Some(table) = shard.try_read() else {
                sum += ops.skip::<Self>(SkipReason::Locked);
                continue;
            };
            let (start, layout) = table.allocation_info();
            // SAFETY: `allocation_info` returns the start and layout of the table's block, or a layout of size 0 if
            // the table has no block.
            sum += unsafe { ops.block(start.as_ptr(), layout) };
            if !K::NEEDS_WALK && !V::NEEDS_WALK && !ops.wants_names() {
                continue;
            }
            sum += ops.contents(|ops| {
                // SAFETY: `table` is borrowed from a guard that is kept until the iterator is dropped, so the table
                // neither moves nor changes.
                let buckets = unsafe { table.iter() };
                total(buckets.map(|bucket| {
                    // SAFETY: the iterator returns only full buckets, and the guard excludes writers.
                    let (key, value) = unsafe { bucket.as_ref() };
                    ops.key(key) + ops.value(value.get())
                }))
            });
        }
        sum
    }
}
