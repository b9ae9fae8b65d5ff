//! Dumps that a black box keeps: the facts in a dump, and the names of its files.

pub use dmd_format::kept_dump::KeptDumpName;

pub use crate::dump::BlackBoxDump;
