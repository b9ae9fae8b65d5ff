use std::alloc::{GlobalAlloc, Layout, System};

struct Mine;

unsafe impl GlobalAlloc for Mine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

memory_reporter::global_allocator!(Mine);

fn main() {}
