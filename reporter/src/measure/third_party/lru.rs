//! `lru`: at least; the entries are exact, and the table of pointers counts as the smallest table for these entries.

use core::alloc::Layout;
use core::hash::{BuildHasher, Hash};

use lru::LruCache;

use crate::measure::layout::hash_table::TableProbe;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::{MallocSizeOfOps, total};
use crate::measure::reading::Reading;

/// A copy of the crate's own `LruEntry`, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
struct LruEntry<K, V> {
    key: K,
    value: V,
    previous: *mut u8,
    next: *mut u8,
}

/// The capacity of the smallest table for this number of entries.
fn capacity_for(entries: usize) -> usize {
    match entries {
        0 => 0,
        1..=3 => 3,
        4..=7 => 7,
        _ => entries.saturating_mul(8).div_ceil(7).checked_next_power_of_two().unwrap_or(0) / 8 * 7,
    }
}

impl<K: MallocSizeOf + Hash + Eq, V: MallocSizeOf, S: BuildHasher> MallocSizeOf for LruCache<K, V, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |(key, value), ops| ops.key(key) + ops.value(value))
    }
}

#[diagnostic::do_not_recommend]
impl<K: Hash + Eq, V, S: BuildHasher> MallocSizeOfEach for LruCache<K, V, S> {
    type Each<'a>
        = (&'a K, &'a V)
    where
        Self: 'a;

    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        mut each: impl FnMut((&'a K, &'a V), &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        let entry = Layout::new::<LruEntry<K, V>>();
        let table = TableProbe::new(capacity_for(self.len())).block(Layout::new::<(usize, usize)>());
        // The list of entries has two extra entries at its ends, without values.
        let ends = Layout::array::<LruEntry<K, V>>(2).unwrap_or(Layout::new::<()>());
        let own = ops.enclosing(core::ptr::null::<usize>(), table)
            + ops.enclosing(core::ptr::null::<LruEntry<K, V>>(), ends);
        let entries = total(self.iter().map(|(key, value)| {
            let block = ops.enclosing(&raw const *key, entry);
            block + ops.contents(|ops| each((key, value), ops))
        }));
        own.saturating_add(entries)
    }
}
