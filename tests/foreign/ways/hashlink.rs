use std::alloc::Layout;
use std::hash::{BuildHasher, Hash};
use std::ptr;

use hashlink::LinkedHashMap;
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

/// Each entry is a separate block with two links. The table of pointers to the entries has at least `capacity` places.
pub fn measure<K, V, S, R>(map: &LinkedHashMap<K, V, S>, ops: &mut MallocSizeOfOps<R>) -> usize
where
    K: MallocSizeOf + Eq + Hash,
    V: MallocSizeOf,
    S: BuildHasher,
    R: Reading,
{
    let table = Layout::array::<usize>(map.capacity()).unwrap_or(Layout::new::<()>());
    let table = ops.enclosing(ptr::null::<usize>(), table);
    table
        + map
            .iter()
            .map(|(key, value)| {
                let node = ops.enclosing(&raw const *key, Layout::new::<((K, V), [usize; 2])>());
                node + ops.contents(|ops| ops.key(key) + ops.value(value))
            })
            .sum::<usize>()
}
