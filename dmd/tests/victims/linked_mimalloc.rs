//! See `linked/work.rs`.

#[path = "linked/work.rs"]
mod work;

#[global_allocator]
static ALLOCATOR: work::Counting<mimalloc::MiMalloc> = work::Counting(mimalloc::MiMalloc);

fn main() {
    work::run();
}
