//! `size_tree` with a declared allocator: the readings ask the allocator for the size of each block.

memory_reporter::global_allocator!(std::alloc::System);

#[path = "size_tree.rs"]
mod size_tree;

fn main() {
    size_tree::main();
}
