//! See `hooks/blocks.rs`.

#[global_allocator]
static ALLOCATOR: dmd::Dmd<tikv_jemallocator::Jemalloc> = dmd::Dmd::new(tikv_jemallocator::Jemalloc);

#[path = "hooks/blocks.rs"]
mod blocks;

fn main() {
    blocks::run();
}
