//! The mode in which DMD recorded a dump.

pub use memory_report::dmd::Mode;
