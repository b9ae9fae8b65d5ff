use std::alloc::Layout;

use memory_reporter::allocator::UsableSize;

struct Mine;

impl UsableSize for Mine {
    unsafe fn usable_size(&self, _: *const u8, layout: Layout) -> usize {
        layout.size()
    }
}

fn main() {}
