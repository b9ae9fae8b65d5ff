use std::alloc::Layout;
use std::ptr;

use http::header::{HeaderMap, HeaderName};
use memory_reporter::{MallocSizeOfOps, Reading};

/// The map's two tables: a hash table whose last quarter stays free, and the entries. Names and values do not show
/// whether they are static or shared.
pub fn headers<T, R: Reading>(headers: &HeaderMap<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let (places, keys) = (headers.capacity() + headers.capacity() / 3, headers.keys_len());
    let first = headers.values().next().map_or(ptr::null(), |first| &raw const *first);
    let entries = Layout::array::<(u16, HeaderName, T, Option<(usize, usize)>)>(keys);
    let table = Layout::array::<(u16, u16)>(places);
    ops.enclosing(first, entries.unwrap_or(Layout::new::<()>()))
        + ops.enclosing(ptr::null::<u16>(), table.unwrap_or(Layout::new::<()>()))
}
