use bstr::BString;
use memory_reporter::{MallocSizeOfOps, Reading};

pub fn measure<R: Reading>(text: &BString, ops: &mut MallocSizeOfOps<R>) -> usize {
    let bytes: &Vec<u8> = text;
    ops.field("bytes", bytes)
}
