//! Turns messages into a graph: resolves texts by number and frames by id, and checks required fields.
//!
//! The format numbers the texts of a node in a fixed order, which differs from the order of the bytes: type name,
//! edge names, stack (for a frame: source, function, then the parent), class, file, descriptive name. So the reader
//! first parses the whole message and then numbers its texts.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, Read};
use std::path::Path;

use hashbrown::HashMap;

use super::error::{MessageError, MessageProblem, SnapshotError};
use super::message::{self, FrameContent, FrameData, RawFrame, RawNode, TextOrRef};
use super::options::SnapshotReadOptions;
use super::unpack::MessageStream;
use super::wire::{MessageBytes, WireError};
use crate::graph::{
    CoarseType, FrameParts, Graph, GraphBuilder, GraphError, GraphFrameId, GraphTextId, NodeId, NodeParts,
};
use crate::progress::{AnalysisProgress, CancelledError};

/// The largest number of frames of a stack. One message nests only a few frames, but its stack may continue the stack
/// of an earlier message. The limit is needed since a report repeats all frames of each stack.
const MAX_FRAMES: u32 = 10_000;

/// Reads the snapshot in a file. A second thread unpacks the file.
///
/// # Errors
///
/// Returns a [`SnapshotError`] if the file cannot be read or is not a valid snapshot. This function rejects every
/// snapshot that Firefox rejects.
pub fn read(path: impl AsRef<Path>) -> Result<Graph, SnapshotError> {
    read_with(path, &SnapshotReadOptions::default())
}

/// Reads the snapshot in a file, with options.
///
/// # Errors
///
/// Returns the same errors as [`read`].
pub fn read_with(path: impl AsRef<Path>, options: &SnapshotReadOptions) -> Result<Graph, SnapshotError> {
    read_watched(path, options, &AnalysisProgress::new())
}

/// Reads the snapshot in a file, with an [`AnalysisProgress`], which counts the bytes of the file and can cancel the
/// reading.
///
/// # Errors
///
/// Returns the errors of [`read`], or [`SnapshotError::Cancelled`].
pub fn read_watched(
    path: impl AsRef<Path>,
    options: &SnapshotReadOptions,
    progress: &AnalysisProgress,
) -> Result<Graph, SnapshotError> {
    let (file, length) = open(path.as_ref())?;
    progress.expect(length);
    let file = WatchedFile { file, progress: progress.clone() };
    let read = MessageStream::on_two_threads(file, options).and_then(graph);
    read.map_err(|error| if progress.is_cancelled() { SnapshotError::Cancelled } else { error })
}

/// A file with an [`AnalysisProgress`] that counts its bytes and can cancel the reading.
struct WatchedFile {
    file: File,
    progress: AnalysisProgress,
}

impl Read for WatchedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(io::Error::other(CancelledError));
        }
        let bytes = self.file.read(buffer)?;
        self.progress.did(bytes as u64);
        Ok(bytes)
    }
}

/// Opens a regular file. Other files are rejected first, since opening a pipe could wait for a writer forever.
/// Returns the file and its length in bytes.
fn open(path: &Path) -> Result<(File, u64), SnapshotError> {
    let check = |metadata: Metadata| match metadata {
        metadata if metadata.is_dir() => Err(SnapshotError::Directory),
        metadata if !metadata.is_file() => Err(SnapshotError::NotAFile),
        metadata => Ok(metadata.len()),
    };
    check(fs::metadata(path).map_err(SnapshotError::Io)?)?;
    let file = File::open(path).map_err(SnapshotError::Io)?;
    // The path may refer to another file by now.
    let length = check(file.metadata().map_err(SnapshotError::Io)?)?;
    Ok((file, length))
}

/// Reads a snapshot from any reader.
///
/// The function keeps one message and the growing graph in memory.
///
/// # Errors
///
/// Returns the same errors as [`read`].
pub fn read_from(file: impl Read, options: &SnapshotReadOptions) -> Result<Graph, SnapshotError> {
    graph(MessageStream::new(file, options)?)
}

fn graph<R: BufRead>(mut messages: MessageStream<R>) -> Result<Graph, SnapshotError> {
    let mut reader = SnapshotReader::default();
    let Some(metadata) = messages.next()? else {
        return Err(
            MessageError { message: 0, field: "", offset: 0, problem: MessageProblem::Missing }.into()
        );
    };
    let time = message::metadata(metadata);
    let time = time.map_err(|(offset, problem)| messages.error("", offset, problem))?;
    reader.builder.set_creation_time(time.filter(|time| *time <= 1 << 53));
    while let Some(message) = messages.next()? {
        if let Err((field, (offset, problem))) = reader.node(message) {
            return Err(messages.error(field, offset, problem).into());
        }
    }
    reader.finish(messages.offset())
}

/// The name of a field, and the problem in it.
type InField = (&'static str, WireError);

/// A text of the one-byte table. It stays undecoded until its first use, since the name of a class is in Latin-1, but
/// the name of a file is in UTF-8.
#[derive(Default)]
struct OneByte {
    bytes: Box<[u8]>,
    as_class: Option<GraphTextId>,
    as_file: Option<GraphTextId>,
}

#[derive(Default)]
struct SnapshotReader {
    builder: GraphBuilder,
    two_byte: Vec<GraphTextId>,
    one_byte: Vec<OneByte>,
    /// Frames by id. Each has the length of its stack.
    frames: HashMap<u64, (GraphFrameId, u32)>,
    /// The position of each node's message, for errors about its edges.
    offsets: Vec<u64>,
    /// The current node.
    raw: RawNode,
    /// The edges of the current node.
    edges: Vec<(NodeId, Option<GraphTextId>)>,
}

impl SnapshotReader {
    fn node(&mut self, message: MessageBytes<'_>) -> Result<(), InField> {
        let mut raw = core::mem::take(&mut self.raw);
        let result = raw
            .read(message)
            .map_err(|misread| ("", misread))
            .and_then(|()| self.checked_node(message, &raw));
        self.raw = raw;
        result
    }

    fn checked_node(&mut self, message: MessageBytes<'_>, raw: &RawNode) -> Result<(), InField> {
        let at = |field, problem| (field, (message.offset, problem));
        let id = raw.id.ok_or(at("id", MessageProblem::Required))?;
        if (id as f64) as u128 != u128::from(id) {
            return Err(at("id", MessageProblem::NotADouble(id)));
        }
        let type_name = self.two_byte(message, "typeName", raw.type_name)?;
        let type_name = type_name.ok_or(at("typeName", MessageProblem::Required))?;
        let shallow_size = raw.size.ok_or(at("size", MessageProblem::Required))?;
        self.edges.clear();
        for edge in &raw.edges {
            let here = message.offset_of(edge.start);
            let referent = edge.referent.ok_or(("edges.referent", (here, MessageProblem::Required)))?;
            let name = self.two_byte(message, "edges.name", edge.name)?;
            self.edges.push((NodeId(referent), name));
        }
        let allocation_stack = match raw.stack {
            Some(stack) => Some(self.frame(message, stack, &raw.frames)?.0),
            None => None,
        };
        let class_name = self.class_name(message, raw.class_name)?;
        let script_file_name = self.file_name(message, raw.file_name)?;
        let descriptive_type_name = self.two_byte(message, "descriptiveTypeName", raw.descriptive_name)?;
        let (number, start) = raw.coarse_type;
        let coarse_type = CoarseType::from_number(number)
            .ok_or(("coarseType", (message.offset_of(start), MessageProblem::CoarseType(number))))?;
        let full = |_| at("", MessageProblem::TooMany("nodes or edges"));
        let parts = NodeParts {
            id: NodeId(id),
            shallow_size,
            type_name,
            coarse_type,
            class_name,
            script_file_name,
            descriptive_type_name,
            allocation_stack,
        };
        self.builder.node(parts).map_err(full)?;
        for (referent, name) in &self.edges {
            self.builder.edge(*referent, *name).map_err(full)?;
        }
        self.offsets.push(message.offset);
        Ok(())
    }

    #[inline]
    fn two_byte(
        &mut self,
        message: MessageBytes<'_>,
        field: &'static str,
        text: TextOrRef,
    ) -> Result<Option<GraphTextId>, InField> {
        match text {
            TextOrRef::None => Ok(None),
            TextOrRef::Ref(number, start) => {
                let known = usize::try_from(number).ok().and_then(|number| self.two_byte.get(number));
                let problem = MessageProblem::NoSuchText(number, self.two_byte.len());
                known.map(|id| Some(*id)).ok_or((field, (message.offset_of(start), problem)))
            }
            TextOrRef::Text(span) => {
                // Firefox copies the text up to its first NUL, and ignores an odd last byte.
                let units =
                    message.get(span).chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
                let id = self.builder.texts.intern_utf16(units.take_while(|unit| *unit != 0));
                let problem = MessageProblem::TooMany("texts");
                let id = id.ok_or((field, (message.offset_of(span.start), problem)))?;
                self.two_byte.push(id);
                Ok(Some(id))
            }
        }
    }

    /// The index of a text in the one-byte table. A new text is added.
    fn one_byte(
        &mut self,
        message: MessageBytes<'_>,
        field: &'static str,
        text: TextOrRef,
    ) -> Result<Option<usize>, InField> {
        match text {
            TextOrRef::None => Ok(None),
            TextOrRef::Ref(number, start) => {
                let known = usize::try_from(number).ok().filter(|number| *number < self.one_byte.len());
                let problem = MessageProblem::NoSuchText(number, self.one_byte.len());
                known.map(Some).ok_or((field, (message.offset_of(start), problem)))
            }
            TextOrRef::Text(span) => {
                let bytes = message.get(span).split(|byte| *byte == 0).next().unwrap_or_default();
                self.one_byte.push(OneByte { bytes: bytes.into(), ..OneByte::default() });
                Ok(Some(self.one_byte.len() - 1))
            }
        }
    }

    fn class_name(
        &mut self,
        message: MessageBytes<'_>,
        text: TextOrRef,
    ) -> Result<Option<GraphTextId>, InField> {
        let Some(place) = self.one_byte(message, "jsObjectClassName", text)? else { return Ok(None) };
        let text = &mut self.one_byte[place];
        if text.as_class.is_none() {
            let latin_1 = text.bytes.iter().map(|byte| u16::from(*byte));
            text.as_class = self.builder.texts.intern_utf16(latin_1);
        }
        Ok(text.as_class)
    }

    fn file_name(
        &mut self,
        message: MessageBytes<'_>,
        text: TextOrRef,
    ) -> Result<Option<GraphTextId>, InField> {
        let Some(place) = self.one_byte(message, "scriptFilename", text)? else { return Ok(None) };
        let text = &mut self.one_byte[place];
        if text.as_file.is_none() {
            text.as_file = match core::str::from_utf8(&text.bytes) {
                Ok(utf_8) => self.builder.texts.intern(utf_8.as_bytes()),
                // Firefox reads an invalid name of one byte as Latin-1. With a longer invalid name, its census fails.
                Err(_) => self.builder.texts.intern_utf16(text.bytes.iter().map(|byte| u16::from(*byte))),
            };
        }
        Ok(text.as_file)
    }

    /// Adds a frame and its parents. The limit of nested messages bounds the number of parents. Returns the frame and
    /// the length of its stack.
    fn frame(
        &mut self,
        message: MessageBytes<'_>,
        raw: RawFrame,
        all: &[FrameData],
    ) -> Result<(GraphFrameId, u32), InField> {
        let data = match raw.content {
            FrameContent::Data(place) => all[place],
            FrameContent::Ref(id, start) => {
                let missing =
                    ("allocationStack.ref", (message.offset_of(start), MessageProblem::NoSuchFrame(id)));
                return self.frames.get(&id).copied().ok_or(missing);
            }
            FrameContent::Neither => {
                return Err(("allocationStack", (message.offset_of(raw.start), MessageProblem::Required)));
            }
        };
        let here = message.offset_of(data.start);
        let missing = |field| (field, (here, MessageProblem::Required));
        let id = data.id.ok_or(missing("allocationStack.data.id"))?;
        let duplicate = ("allocationStack.data.id", (here, MessageProblem::Duplicate(id)));
        if self.frames.contains_key(&id) {
            return Err(duplicate);
        }
        let line = data.line.ok_or(missing("allocationStack.data.line"))?;
        let column = data.column.ok_or(missing("allocationStack.data.column"))?;
        // The highest bit marks a WebAssembly function. Firefox shows column 1 for it.
        let column = if column < 1 << 31 { column } else { 1 };
        let is_system = data.is_system.ok_or(missing("allocationStack.data.isSystem"))?;
        let is_self_hosted = data.is_self_hosted.ok_or(missing("allocationStack.data.isSelfHosted"))?;
        let source = self.two_byte(message, "allocationStack.data.source", data.source)?;
        let source = source.ok_or(missing("allocationStack.data.source"))?;
        let function = self.two_byte(message, "allocationStack.data.functionDisplayName", data.function)?;
        let (parent, depth) = match data.parent {
            Some(parent) => {
                let (parent, depth) = self.frame(message, parent, all)?;
                (Some(parent), depth + 1)
            }
            None => (None, 1),
        };
        if depth > MAX_FRAMES {
            return Err(("allocationStack", (here, MessageProblem::TooDeep(MAX_FRAMES))));
        }
        let parts = FrameParts { parent, source, line, column, function, is_system, is_self_hosted };
        let full = |_| ("allocationStack", (here, MessageProblem::TooMany("frames")));
        let frame = self.builder.frame(parts).map_err(full)?;
        if self.frames.insert(id, (frame, depth)).is_some() {
            return Err(duplicate);
        }
        Ok((frame, depth))
    }

    fn finish(self, end: u64) -> Result<Graph, SnapshotError> {
        let Self { builder, offsets, .. } = self;
        builder.finish().map_err(|error| {
            let (node, field, problem) = match error {
                GraphError::NoNodes => (0, "", MessageProblem::Missing),
                GraphError::MissingReferent { node_position, referent, .. } => {
                    (node_position, "edges.referent", MessageProblem::NoSuchNode(referent.0))
                }
                GraphError::DuplicateId { id, second, .. } => (second, "id", MessageProblem::Duplicate(id.0)),
                GraphError::TooMany(what) => (0, "", MessageProblem::TooMany(what)),
            };
            let offset = offsets.get(node).copied().unwrap_or(end);
            MessageError { message: node as u64 + 1, field, offset, problem }.into()
        })
    }
}
