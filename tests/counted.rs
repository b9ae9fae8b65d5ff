//! Tests that cross crates, in a process whose allocator counts what each thread holds.

mod foreign_types;
mod matrix;
mod size_tree;
mod snapshot_memory;
mod split;
mod tag_runtimes;
mod third_party;

memory_reporter::global_allocator!(tests::Counting);
