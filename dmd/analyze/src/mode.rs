//! The mode in which DMD recorded a dump.

pub use dmd_format::Mode;
