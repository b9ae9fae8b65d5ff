//! Heap snapshots: files that end in `.fxsnapshot`, as Firefox writes and reads them.
//!
//! One compressed stream of protobuf messages, each after its length: `Metadata`, then a `Node`
//! each, the root first. Texts stand in a node where first used, and by number afterwards: there
//! are two tables, of two-byte and of one-byte texts.

mod encode;
mod message;
mod read;
mod unpack;
mod wire;
mod write;

pub(crate) use read::open;
pub use read::{ReadOptions, read, read_from, read_with};
pub(crate) use write::Packer;
pub use write::{SnapshotWriter, WriteOptions, write};
