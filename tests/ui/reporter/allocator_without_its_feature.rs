// The type of tikv_jemallocator: memory-reporter measures it only with the feature `jemalloc07`.
mod tikv_jemallocator {
    use std::alloc::{GlobalAlloc, Layout, System};

    pub struct Jemalloc;

    unsafe impl GlobalAlloc for Jemalloc {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}

memory_reporter::global_allocator!(tikv_jemallocator::Jemalloc);

fn main() {}
