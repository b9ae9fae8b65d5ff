//! From messages to a graph: texts by number, frames by id, and what must be there.
//!
//! The order in which a node's texts are numbered is not that of its bytes: type name, edge names,
//! stack (in a frame: source, function, then the parent), class, file, descriptive name. So a
//! message is taken apart first, and its texts are numbered afterwards.

use std::fs::{self, File, Metadata};
use std::io::{BufRead, Read};
use std::path::Path;

use hashbrown::HashMap;

use super::message::{self, FrameContent, FrameData, RawFrame, RawNode, TextOrRef};
use super::unpack::Messages;
use super::wire::{Message, Misread};
use crate::coarse_type::CoarseType;
use crate::error::{GraphError, MessageError, Problem, SnapshotError};
use crate::frame::{FrameId, FrameParts};
use crate::graph::{Graph, GraphBuilder, NodeId, NodeParts};
use crate::text::TextId;

/// Frames of a stack at most. A message nests few, but each may go on where another began; and a report names
/// all frames of each stack.
const MAX_FRAMES: u32 = 10_000;

/// How to read a snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// A message of more bytes is refused; by default 67,108,864, as in Firefox. Only the root of
    /// a heap with millions of roots comes near.
    pub max_message_bytes: u64,
    /// A snapshot of more bytes, once unpacked, is refused; by default 1,073,741,824 (1 GiB). A graph
    /// takes about as much memory as its unpacked snapshot, and a file may unpack to a thousand times its size.
    pub max_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_message_bytes: 64 << 20, max_bytes: 1 << 30 }
    }
}

impl ReadOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`max_message_bytes`](Self::max_message_bytes).
    pub fn max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// Reads the snapshot in a file, which is unpacked on a thread of its own.
///
/// # Errors
///
/// What [`SnapshotError`] lists; every snapshot that Firefox refuses is refused.
pub fn read(path: impl AsRef<Path>) -> Result<Graph, SnapshotError> {
    read_with(path, &ReadOptions::default())
}

/// Reads the snapshot in a file, with options.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Graph, SnapshotError> {
    let (file, _) = open(path.as_ref())?;
    graph(Messages::on_two_threads(file, options)?)
}

/// Opens a file, and nothing else: a pipe without a writer would be waited for without end. Its length, too.
pub(crate) fn open(path: &Path) -> Result<(File, u64), SnapshotError> {
    let check = |metadata: Metadata| match metadata {
        metadata if metadata.is_dir() => Err(SnapshotError::Directory),
        metadata if !metadata.is_file() => Err(SnapshotError::NotAFile),
        metadata => Ok(metadata.len()),
    };
    check(fs::metadata(path).map_err(SnapshotError::Io)?)?;
    let file = File::open(path).map_err(SnapshotError::Io)?;
    // It may be another one by now.
    let length = check(file.metadata().map_err(SnapshotError::Io)?)?;
    Ok((file, length))
}

/// Reads a snapshot from anything.
///
/// One message is in memory at a time, and the graph that grows.
///
/// # Errors
///
/// As [`read`].
pub fn read_from(file: impl Read, options: &ReadOptions) -> Result<Graph, SnapshotError> {
    graph(Messages::new(file, options)?)
}

fn graph<R: BufRead>(mut messages: Messages<R>) -> Result<Graph, SnapshotError> {
    let mut reader = Reader::default();
    let Some(metadata) = messages.next()? else {
        return Err(MessageError { message: 0, field: "", offset: 0, problem: Problem::Missing }.into());
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

/// The field, and what is wrong where.
type InField = (&'static str, Misread);

/// A text of the one-byte table: kept as bytes, since a class is spelled in Latin-1 and a file
/// name in UTF-8.
#[derive(Default)]
struct OneByte {
    bytes: Box<[u8]>,
    as_class: Option<TextId>,
    as_file: Option<TextId>,
}

#[derive(Default)]
struct Reader {
    builder: GraphBuilder,
    two_byte: Vec<TextId>,
    one_byte: Vec<OneByte>,
    /// With the number of frames from each on.
    frames: HashMap<u64, (FrameId, u32)>,
    /// Of each node's message, to say where an edge is that goes nowhere.
    offsets: Vec<u64>,
    /// The node at hand.
    raw: RawNode,
    /// Its edges.
    edges: Vec<(NodeId, Option<TextId>)>,
}

impl Reader {
    fn node(&mut self, message: Message<'_>) -> Result<(), InField> {
        let mut raw = core::mem::take(&mut self.raw);
        let result = raw
            .read(message)
            .map_err(|misread| ("", misread))
            .and_then(|()| self.checked_node(message, &raw));
        self.raw = raw;
        result
    }

    fn checked_node(&mut self, message: Message<'_>, raw: &RawNode) -> Result<(), InField> {
        let at = |field, problem| (field, (message.offset, problem));
        let id = raw.id.ok_or(at("id", Problem::Required))?;
        if (id as f64) as u128 != u128::from(id) {
            return Err(at("id", Problem::NotADouble(id)));
        }
        let type_name = self.two_byte(message, "typeName", raw.type_name)?;
        let type_name = type_name.ok_or(at("typeName", Problem::Required))?;
        let shallow_size = raw.size.ok_or(at("size", Problem::Required))?;
        self.edges.clear();
        for edge in &raw.edges {
            let here = message.offset_of(edge.start);
            let referent = edge.referent.ok_or(("edges.referent", (here, Problem::Required)))?;
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
            .ok_or(("coarseType", (message.offset_of(start), Problem::CoarseType(number))))?;
        let full = |_| at("", Problem::TooMany("nodes or edges"));
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
        message: Message<'_>,
        field: &'static str,
        text: TextOrRef,
    ) -> Result<Option<TextId>, InField> {
        match text {
            TextOrRef::None => Ok(None),
            TextOrRef::Ref(number, start) => {
                let known = usize::try_from(number).ok().and_then(|number| self.two_byte.get(number));
                let problem = Problem::NoSuchText(number, self.two_byte.len());
                known.map(|id| Some(*id)).ok_or((field, (message.offset_of(start), problem)))
            }
            TextOrRef::Text(span) => {
                // As Firefox copies it: up to the first NUL, without an odd last byte.
                let units =
                    message.get(span).chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
                let id = self.builder.texts.intern_utf16(units.take_while(|unit| *unit != 0));
                let problem = Problem::TooMany("texts");
                let id = id.ok_or((field, (message.offset_of(span.start), problem)))?;
                self.two_byte.push(id);
                Ok(Some(id))
            }
        }
    }

    /// The place of a text in the one-byte table.
    fn one_byte(
        &mut self,
        message: Message<'_>,
        field: &'static str,
        text: TextOrRef,
    ) -> Result<Option<usize>, InField> {
        match text {
            TextOrRef::None => Ok(None),
            TextOrRef::Ref(number, start) => {
                let known = usize::try_from(number).ok().filter(|number| *number < self.one_byte.len());
                let problem = Problem::NoSuchText(number, self.one_byte.len());
                known.map(Some).ok_or((field, (message.offset_of(start), problem)))
            }
            TextOrRef::Text(span) => {
                let bytes = message.get(span).split(|byte| *byte == 0).next().unwrap_or_default();
                self.one_byte.push(OneByte { bytes: bytes.into(), ..OneByte::default() });
                Ok(Some(self.one_byte.len() - 1))
            }
        }
    }

    fn class_name(&mut self, message: Message<'_>, text: TextOrRef) -> Result<Option<TextId>, InField> {
        let Some(place) = self.one_byte(message, "jsObjectClassName", text)? else { return Ok(None) };
        let text = &mut self.one_byte[place];
        if text.as_class.is_none() {
            let latin_1 = text.bytes.iter().map(|byte| u16::from(*byte));
            text.as_class = self.builder.texts.intern_utf16(latin_1);
        }
        Ok(text.as_class)
    }

    fn file_name(&mut self, message: Message<'_>, text: TextOrRef) -> Result<Option<TextId>, InField> {
        let Some(place) = self.one_byte(message, "scriptFilename", text)? else { return Ok(None) };
        let text = &mut self.one_byte[place];
        if text.as_file.is_none() {
            text.as_file = match core::str::from_utf8(&text.bytes) {
                Ok(utf_8) => self.builder.texts.intern(utf_8.as_bytes()),
                // Firefox takes one such byte for Latin-1; of more it makes no report.
                Err(_) => self.builder.texts.intern_utf16(text.bytes.iter().map(|byte| u16::from(*byte))),
            };
        }
        Ok(text.as_file)
    }

    /// A frame and its parents, which are at most as many as the message may nest.
    fn frame(
        &mut self,
        message: Message<'_>,
        raw: RawFrame,
        all: &[FrameData],
    ) -> Result<(FrameId, u32), InField> {
        let data = match raw.content {
            FrameContent::Data(place) => all[place],
            FrameContent::Ref(id, start) => {
                let missing = ("allocationStack.ref", (message.offset_of(start), Problem::NoSuchFrame(id)));
                return self.frames.get(&id).copied().ok_or(missing);
            }
            FrameContent::Neither => {
                return Err(("allocationStack", (message.offset_of(raw.start), Problem::Required)));
            }
        };
        let here = message.offset_of(data.start);
        let missing = |field| (field, (here, Problem::Required));
        let id = data.id.ok_or(missing("allocationStack.data.id"))?;
        let duplicate = ("allocationStack.data.id", (here, Problem::Duplicate(id)));
        if self.frames.contains_key(&id) {
            return Err(duplicate);
        }
        let line = data.line.ok_or(missing("allocationStack.data.line"))?;
        let column = data.column.ok_or(missing("allocationStack.data.column"))?;
        // The highest bit marks functions of WebAssembly, whose column Firefox gives as 1.
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
            return Err(("allocationStack", (here, Problem::TooDeep(MAX_FRAMES))));
        }
        let parts = FrameParts { parent, source, line, column, function, is_system, is_self_hosted };
        let full = |_| ("allocationStack", (here, Problem::TooMany("frames")));
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
                GraphError::NoNodes => (0, "", Problem::Missing),
                GraphError::MissingReferent { node_position, referent, .. } => {
                    (node_position, "edges.referent", Problem::NoSuchNode(referent.0))
                }
                GraphError::DuplicateId { id, second, .. } => (second, "id", Problem::Duplicate(id.0)),
                GraphError::TooMany(what) => (0, "", Problem::TooMany(what)),
            };
            let offset = offsets.get(node).copied().unwrap_or(end);
            MessageError { message: node as u64 + 1, field, offset, problem }.into()
        })
    }
}
