//! The blocks of an engine in memory. Either the engine passes its blocks, or this module reads the blocks from the
//! engine's tables in another process or in a core file.

pub mod dark_matter;
pub mod image;
