//! `MallocSizeOf` for the types of std.

mod borrowed;
mod cell;
mod map;
mod owning;
mod plain;
mod sequence;
mod shared;
mod sync;
mod text;
mod wrapper;
