//! What an engine has in memory: blocks that it passes to this crate, and tables that lie in another process or in a core
//! file.

pub mod dark_matter;
pub mod image;
