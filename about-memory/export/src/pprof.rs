//! pprof: `profile.proto` of google/pprof, compressed by gzip. `go tool pprof`, Pyroscope, Parca, speedscope and others
//! open it.
//!
//! The values of a sample are `alloc_objects`, `alloc_space`, `inuse_objects` and `inuse_space`, without the values
//! that were not recorded. Its labels are `kind`, `reporter`, `type` and `thread`. A function has its readable name as
//! `name` and its mangled name as `system_name`. The names must differ, because clients demangle a name that equals its
//! system name, and so damage names of Rust.
//!
//! Addresses are addresses in the module's file, and each mapping goes from 0 to the largest address. From this,
//! clients recognize addresses that do not depend on the place where the program was loaded.

mod read;
mod wire;
mod write;

pub use read::{PprofReadOptions, is_pprof, read};
pub use write::{PprofOptions, PprofSymbols, write};
