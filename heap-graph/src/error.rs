//! Why a graph could not be built, read, written or asked.

use core::fmt;
use std::io;

use crate::graph::NodeId;

/// Why a graph could not be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// There is not even a root.
    NoNodes,
    /// Two nodes have the same id.
    DuplicateId {
        /// The id.
        id: NodeId,
        /// Position of one among the nodes, from 0.
        first: usize,
        /// Position of the other.
        second: usize,
    },
    /// An edge goes to an id that no node has.
    MissingReferent {
        /// The node the edge belongs to.
        node: NodeId,
        /// Its position among the nodes, from 0.
        node_position: usize,
        /// The edge's position among the edges of the node, from 0.
        edge: usize,
        /// The id that no node has.
        referent: NodeId,
    },
    /// More of these than 32 bits can count.
    TooMany(&'static str),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("no nodes, not even a root"),
            Self::DuplicateId { id, first, second } => {
                write!(f, "nodes {first} and {second} have the same id, {id}")
            }
            Self::MissingReferent { node, edge, referent, .. } => {
                write!(f, "edge {edge} of node {node} goes to {referent}, which is no node")
            }
            Self::TooMany(what) => write!(f, "more {what} than 32 bits can count"),
        }
    }
}

impl std::error::Error for GraphError {}

/// Why a snapshot could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file could not be opened or read.
    Io(io::Error),
    /// It is a directory.
    Directory,
    /// It is a pipe, a device or the like.
    NotAFile,
    /// There is nothing in it.
    Empty,
    /// It starts neither as gzip nor as zlib.
    NotCompressed,
    /// The compressed data is damaged after this many unpacked bytes.
    Damaged(u64, io::Error),
    /// A message is wrong.
    Message(MessageError),
}

/// What is wrong with one message of a snapshot, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageError {
    /// Position of the message in the file, from 0; 0 is the `Metadata`, 1 the root's `Node`.
    pub message: u64,
    /// Field of the message, such as `edges.referent`; empty if the message as a whole is meant.
    pub field: &'static str,
    /// Where, in bytes of the unpacked stream.
    pub offset: u64,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The stream ends before the message.
    Missing,
    /// The stream ends inside the message, of which so many bytes are missing.
    Truncated(u64),
    /// The message has no bytes.
    ZeroLength,
    /// The message has so many bytes, more than [`ReadOptions`](crate::snapshot::ReadOptions) allows.
    TooLong(u64),
    /// The message goes past so many bytes, the most that
    /// [`ReadOptions`](crate::snapshot::ReadOptions) allows in all.
    TooManyBytes(u64),
    /// A number does not end within the message, or has more than ten bytes.
    BadNumber,
    /// A part of so many bytes goes past the end of the message.
    PastTheEnd(u64),
    /// A field's number or kind of encoding is none.
    BadTag(u64),
    /// A field that must be there is not.
    Required,
    /// Two messages give the same id.
    Duplicate(u64),
    /// An id that no double can hold exactly, as JavaScript must.
    NotADouble(u64),
    /// A coarse type that does not exist.
    CoarseType(u32),
    /// A text by its number, when there were only so many texts.
    NoSuchText(u64, usize),
    /// A frame by its id, which was not given before.
    NoSuchFrame(u64),
    /// An edge to an id that no node has.
    NoSuchNode(u64),
    /// More frames inside each other than Firefox reads in one message, or than 10,000 in all.
    TooDeep(u32),
    /// More messages and groups inside each other than Firefox reads.
    TooNested(u32),
    /// More of something than 32 bits can count.
    TooMany(&'static str),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => f.write_str("not found"),
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Directory => f.write_str("is a directory"),
            Self::NotAFile => f.write_str("is not a regular file"),
            Self::Empty => f.write_str("is empty: not a heap snapshot"),
            Self::NotCompressed => f.write_str("not a heap snapshot: starts neither as gzip nor as zlib"),
            Self::Damaged(bytes, error) => {
                write!(f, "damaged compressed data after {bytes} unpacked bytes: {error}")
            }
            Self::Message(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) | Self::Damaged(_, error) => Some(error),
            Self::Message(error) => Some(error),
            Self::Directory | Self::NotAFile | Self::Empty | Self::NotCompressed => None,
        }
    }
}

impl From<MessageError> for SnapshotError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            0 => f.write_str("message 0 (Metadata)")?,
            1 => f.write_str("message 1 (Node, the root)")?,
            n => write!(f, "message {n} (Node)")?,
        }
        if !self.field.is_empty() {
            write!(f, ", field {}", self.field)?;
        }
        write!(f, ", at unpacked byte {}: {}", self.offset, self.problem)
    }
}

impl std::error::Error for MessageError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Truncated(bytes) => write!(f, "truncated, {bytes} bytes are missing"),
            Self::ZeroLength => f.write_str("of length 0"),
            Self::TooLong(bytes) => write!(f, "too long: {bytes} bytes"),
            Self::TooManyBytes(max) => write!(f, "goes past {max} unpacked bytes, the most allowed"),
            Self::BadNumber => f.write_str("not a number of one to ten bytes"),
            Self::PastTheEnd(bytes) => write!(f, "{bytes} bytes go past the end of the message"),
            Self::BadTag(tag) => write!(f, "no field can start with {tag}"),
            Self::Required => f.write_str("missing"),
            Self::Duplicate(id) => write!(f, "the id {id} was there before"),
            Self::NotADouble(id) => write!(f, "no double can hold the id {id}"),
            Self::CoarseType(number) => write!(f, "there is no coarse type {number}"),
            Self::NoSuchText(number, 0) => write!(f, "text {number}, when there was none"),
            Self::NoSuchText(number, texts) => write!(f, "text {number}, when there were {texts}"),
            Self::NoSuchFrame(id) => write!(f, "the frame {id} was not there before"),
            Self::NoSuchNode(id) => write!(f, "goes to {id}, which is no node"),
            Self::TooDeep(frames) => write!(f, "more than {frames} frames inside each other"),
            Self::TooNested(most) => write!(f, "more than {most} messages and groups inside each other"),
            Self::TooMany(what) => write!(f, "more {what} than 32 bits can count"),
        }
    }
}
