//! The reasons why a snapshot is rejected.

use core::fmt;
use std::io;

use crate::progress::CancelledError;

/// The reason why a snapshot cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The system cannot open or read the file.
    Io(io::Error),
    /// The path is a directory.
    Directory,
    /// The path is a pipe, a device or another special file.
    NotAFile,
    /// The file has no bytes.
    Empty,
    /// The data does not start like gzip or zlib data.
    NotCompressed,
    /// The compressed data is damaged. The number is the count of bytes unpacked before the damage.
    Damaged(u64, io::Error),
    /// A message is invalid.
    Message(MessageError),
    /// The reading was cancelled.
    Cancelled,
}

/// A problem in one message of a snapshot, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageError {
    /// The position of the message in the file, from 0; 0 is the `Metadata`, 1 the root's `HeapNode`.
    pub message: u64,
    /// The field of the message, such as `edges.referent`. Empty if the problem is in the whole message.
    pub field: &'static str,
    /// The position, in bytes from the start of the unpacked stream.
    pub offset: u64,
    /// The problem.
    pub problem: MessageProblem,
}

/// The problems that a message can have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageProblem {
    /// The stream ends before the message.
    Missing,
    /// The stream ends inside the message. The number is the count of missing bytes.
    Truncated(u64),
    /// The message has no bytes.
    ZeroLength,
    /// The message is too long: it has this number of bytes, more than
    /// [`SnapshotReadOptions`](super::SnapshotReadOptions) allows.
    TooLong(u64),
    /// The snapshot is too long: it would exceed this number of unpacked bytes, the limit of
    /// [`SnapshotReadOptions`](super::SnapshotReadOptions).
    TooManyBytes(u64),
    /// A number continues beyond the message, or has more than ten bytes.
    BadNumber,
    /// A part of this number of bytes would end after the message.
    PastTheEnd(u64),
    /// The number is not a valid tag: the field number or the encoding does not exist in Protobuf.
    BadTag(u64),
    /// A required field is missing.
    Required,
    /// This id belongs to two nodes or two frames.
    Duplicate(u64),
    /// This id has no exact representation as a double, the type of JavaScript's numbers.
    NotADouble(u64),
    /// The format has no coarse type with this number.
    CoarseType(u32),
    /// The number of the text (first field) is too large: the messages so far contain fewer texts (second field).
    NoSuchText(u64, usize),
    /// This id belongs to no earlier frame.
    NoSuchFrame(u64),
    /// An edge leads to this id, but no node has it.
    NoSuchNode(u64),
    /// A stack nests more frames than this limit: Firefox's limit for one message, or 10,000 in total.
    TooDeep(u32),
    /// Messages and groups are nested deeper than this limit of Firefox.
    TooNested(u32),
    /// There are too many items for 32 bits. The text names the items.
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
            Self::Cancelled => CancelledError.fmt(f),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) | Self::Damaged(_, error) => Some(error),
            Self::Message(error) => Some(error),
            Self::Directory | Self::NotAFile | Self::Empty | Self::NotCompressed | Self::Cancelled => None,
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

impl fmt::Display for MessageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Truncated(bytes) => write!(f, "truncated, {bytes} bytes are missing"),
            Self::ZeroLength => f.write_str("of length 0"),
            Self::TooLong(bytes) => write!(f, "too long: {bytes} bytes"),
            Self::TooManyBytes(max) => write!(f, "reading on would exceed {max} unpacked bytes"),
            Self::BadNumber => f.write_str("not a number of one to ten bytes"),
            Self::PastTheEnd(bytes) => write!(f, "{bytes} bytes reach past the end of the message"),
            Self::BadTag(tag) => write!(f, "no field can start with {tag}"),
            Self::Required => f.write_str("missing"),
            Self::Duplicate(id) => write!(f, "the id {id} is not unique"),
            Self::NotADouble(id) => write!(f, "a double cannot hold the id {id}"),
            Self::CoarseType(number) => write!(f, "there is no coarse type {number}"),
            Self::NoSuchText(number, texts) => write!(f, "there is no text {number}, only {texts} so far"),
            Self::NoSuchFrame(id) => write!(f, "no earlier frame has the id {id}"),
            Self::NoSuchNode(id) => write!(f, "no node has the id {id}"),
            Self::TooDeep(frames) => write!(f, "frames nest deeper than {frames}"),
            Self::TooNested(most) => write!(f, "messages and groups nest deeper than {most}"),
            Self::TooMany(what) => write!(f, "more {what} than 32 bits can count"),
        }
    }
}
