use std::alloc::Layout;
use std::ptr;

use http::header::{HeaderMap, HeaderName};
use memory_reporter::{MallocSizeOfOps, Reading};

/// The two tables of the map: a hash table, in which a quarter of the places always stays free, and the entries. It is
/// not visible whether names and values are static or shared.
pub fn headers<T, R: Reading>(headers: &HeaderMap<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let (places, keys) = (headers.capacity() + headers.capacity() / 3, headers.keys_len());
    let first = headers.values().next().map_or(ptr::null(), |first| &raw const *first);
    let entries = Layout::array::<(u16, HeaderName, T, Option<(usize, usize)>)>(keys);
    let table = Layout::array::<(u16, u16)>(places);
    ops.enclosing(first, entries.unwrap_or(Layout::new::<()>()))
        + ops.enclosing(ptr::null::<u16>(), table.unwrap_or(Layout::new::<()>()))
}
