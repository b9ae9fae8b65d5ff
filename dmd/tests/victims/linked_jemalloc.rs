//! See `linked/work.rs`.

#[path = "linked/work.rs"]
mod work;

#[global_allocator]
static ALLOCATOR: work::Counting<tikv_jemallocator::Jemalloc> = work::Counting(tikv_jemallocator::Jemalloc);

fn main() {
    work::run();
}
