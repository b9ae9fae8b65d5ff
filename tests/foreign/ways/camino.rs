use std::alloc::Layout;

use camino::Utf8PathBuf;
use memory_reporter::{MallocSizeOfOps, Reading};

pub fn measure<R: Reading>(path: &Utf8PathBuf, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<u8>(path.capacity()).unwrap_or(Layout::new::<()>());
    ops.enclosing(path.as_str().as_ptr(), layout)
}
