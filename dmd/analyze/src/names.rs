//! Facts about functions, from their names and source files: their crate, the type that they allocate, and whether a
//! view folds them.

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
pub(crate) use fold::{FoldedStack, arena_of};
pub(crate) use framework::FrameworkSources;
pub(crate) use source_path::CrateFolders;
#[cfg(feature = "symbols")]
pub(crate) use source_path::{UnitName, is_own};
