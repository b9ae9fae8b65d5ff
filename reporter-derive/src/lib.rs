//! `#[derive(MallocSizeOf)]` for the memory-reporter crate.
