//! See `doors/blocks.rs`.

#[global_allocator]
static ALLOCATOR: dmd::Dmd<mimalloc::MiMalloc> = dmd::Dmd::new(mimalloc::MiMalloc);

#[path = "doors/blocks.rs"]
mod blocks;

fn main() {
    blocks::run();
}
