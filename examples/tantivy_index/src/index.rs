use std::alloc::Layout;

use memory_reporter::{MallocSizeOfOps, MemoryReporter, Reading, Reports};
use tantivy::{Directory as _, Index};

pub struct Search {
    pub index: Index,
}

impl MemoryReporter for Search {
    fn collect_reports(&self, out: &mut Reports) {
        out.heap_with(
            "explicit/search/index",
            |ops| files(&self.index, ops),
            "Memory used by the search index.",
        );
    }
}

/// The files of an index in memory are private blocks of tantivy. A file gives access to its bytes, which are inside
/// its block.
fn files<R: Reading>(index: &Index, ops: &mut MallocSizeOfOps<R>) -> usize {
    let directory = index.directory();
    let names = directory.list_managed_files();
    let files = names.iter().filter_map(|name| directory.open_read(name).ok()?.read_bytes().ok());
    files.map(|bytes| ops.enclosing(bytes.as_ptr(), Layout::for_value::<[u8]>(&bytes))).sum()
}
