//! Facts about functions, from names and files: whose they are, what they allocate, and whether they say nothing about
//! the program.

mod allocators;
mod container;
mod fold;
mod framework;
mod owner;
#[cfg_attr(not(feature = "symbols"), allow(dead_code, reason = "the look-up of symbols needs a part of it"))]
mod source_path;
mod type_name;
mod workspace;

pub use fold::{FoldReason, FoldRules};
pub use type_name::{BlockShape, FunctionName, TypeCertainty, TypeNames, TypeVerdict, short_type_name};
pub use workspace::Workspace;

pub(crate) use allocators::AllocatorFrames;
pub(crate) use container::{container_of, segments};
pub(crate) use fold::FoldedStack;
pub(crate) use framework::FrameworkSources;
pub(crate) use source_path::CrateFolders;
#[cfg(feature = "symbols")]
pub(crate) use source_path::UnitName;
