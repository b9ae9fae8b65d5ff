use memmap2::Mmap;
use memory_reporter::{MemoryReporter, Reports};

pub struct Index {
    pub file: Mmap,
}

impl MemoryReporter for Index {
    fn collect_reports(&self, out: &mut Reports) {
        out.mapped("explicit/index/mapped", &self.file, "Resident part of the index's file.");
    }
}
