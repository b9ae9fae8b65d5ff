//! See `hooks/blocks.rs`.

#[global_allocator]
static ALLOCATOR: dmd::Dmd<std::alloc::System> = dmd::Dmd::new(std::alloc::System);

#[path = "hooks/blocks.rs"]
mod blocks;

fn main() {
    blocks::run();
}
