//! `MallocSizeOf` for the types of std.

mod borrowed;
mod cell;
mod channel;
mod dynamic;
mod error;
mod function;
mod io;
mod iterator;
mod lazy;
mod owning;
mod process;
mod report_set;
mod shared;
mod sync;
mod text;
mod thread;
mod weak;

pub(crate) mod map;
pub(crate) mod opaque;
pub(crate) mod plain;
pub(crate) mod sequence;
pub(crate) mod wrapper;
