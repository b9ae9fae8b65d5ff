//! Tags: a block belongs to a path if a thread allocates the block under the path's tag, for any type and owner.
//!
//! A [`CountedTag`] knows its live bytes and its peak at any time, and a [`TagLimit`] calls a function when the live
//! bytes exceed a limit.

pub use super::counted_tags::CountedTag;
pub use super::keyed_tags::KeyedTags;
pub use super::path_tags::{Tag, TagGuard, TaggedFuture, spawn_tagged, tag};
pub use super::tag_limits::{LimitCrossing, LimitRegistration, TagLimit};
