//! See `hooks/blocks.rs`.

#[global_allocator]
static ALLOCATOR: dmd::Dmd<mimalloc::MiMalloc> = dmd::Dmd::new(mimalloc::MiMalloc);

#[path = "hooks/blocks.rs"]
mod blocks;

fn main() {
    blocks::run();
}
