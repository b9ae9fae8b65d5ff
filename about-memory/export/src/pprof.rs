//! pprof: `profile.proto` of google/pprof, compressed by gzip. `go tool pprof`, Pyroscope, Parca, speedscope and others
//! open it.
//!
//! A sample has the recorded ones of the values `alloc_objects`, `alloc_space`, `inuse_objects` and `inuse_space`, and
//! the labels `kind`, `reporter`, `type` and `thread`. A function has its readable name as `name` and the linker's as
//! `system_name`: clients demangle a name that is equal to its system name, and so destroy names of Rust.
//!
//! Addresses are those in the file of the module, and each mapping is from 0 to the largest address. This is how clients
//! recognize addresses that do not depend on where the program was loaded.

mod read;
mod wire;
mod write;

pub use read::{PprofReadOptions, is_pprof, read};
pub use write::{PprofOptions, PprofSymbols, write};
