use std::alloc::Layout;
use std::ptr;

use csv::ByteRecord;
use memory_reporter::{MallocSizeOfOps, Reading};

/// The bytes of the fields, and the end of each field. `as_byte_record` converts a `StringRecord` to a `ByteRecord`.
pub fn measure<R: Reading>(record: &ByteRecord, ops: &mut MallocSizeOfOps<R>) -> usize {
    let bytes = record.as_slice();
    let ends = Layout::array::<usize>(record.len()).unwrap_or(Layout::new::<()>());
    ops.enclosing(bytes.as_ptr(), Layout::for_value(bytes)) + ops.enclosing(ptr::null::<usize>(), ends)
}
