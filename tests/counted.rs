//! Tests across several crates, in a process whose allocator counts the memory of each thread.

mod foreign_types;
mod matrix;
mod size_tree;
mod snapshot_memory;
mod split;
mod tag_runtimes;
mod third_party;

memory_reporter::global_allocator!(tests::Counting);
