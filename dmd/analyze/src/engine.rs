//! The blocks of an engine in memory. Either the engine passes them itself, or they are read from its tables in another
//! process or in a core file.

pub mod dark_matter;
pub mod image;
