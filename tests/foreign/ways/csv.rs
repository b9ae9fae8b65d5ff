use std::alloc::Layout;
use std::ptr;

use csv::ByteRecord;
use memory_reporter::{MallocSizeOfOps, Reading};

/// The bytes of the fields, and where each ends. A `StringRecord` gives a `ByteRecord` by `as_byte_record`.
pub fn measure<R: Reading>(record: &ByteRecord, ops: &mut MallocSizeOfOps<R>) -> usize {
    let bytes = record.as_slice();
    let ends = Layout::array::<usize>(record.len()).unwrap_or(Layout::new::<()>());
    ops.enclosing(bytes.as_ptr(), Layout::for_value(bytes)) + ops.enclosing(ptr::null::<usize>(), ends)
}
