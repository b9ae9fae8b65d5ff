//! Heap snapshots: files that end in `.fxsnapshot`, which Firefox writes and reads.
//!
//! A file is one compressed stream of protobuf messages, each preceded by its length: one `Metadata`, then one
//! `HeapNode` for each node, the root first. The message of the node that first uses a text contains the text. Later
//! messages contain its number. Texts are numbered in two tables: one for two-byte texts and one for one-byte texts.

mod encode;
mod error;
mod message;
mod options;
mod read;
mod unpack;
mod wire;
mod write;

pub use error::{MessageError, MessageProblem, SnapshotError};
pub use options::{SnapshotReadOptions, SnapshotWriteOptions};
pub use read::{read, read_from, read_watched, read_with};
pub(crate) use write::Packer;
pub use write::{SnapshotWriter, write};
