//! The blocks of an engine in memory: passed by the engine itself, or read from its tables in another process or in a
//! core file.

pub mod dark_matter;
pub mod image;
