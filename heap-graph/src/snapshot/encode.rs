//! Turns nodes into messages. The first use of a text or frame is written in full; later uses refer to its number.

use super::message::MAX_NESTED_FRAMES;
use crate::graph::{CoarseType, FrameTable, GraphFrameId, GraphTextId, NodeId, NodeKind, TextTable};

const UNWRITTEN: u32 = u32::MAX;

/// Records the texts and frames that it has written, by their ids. An encoder belongs to one table of texts and one
/// table of frames. These tables may grow.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    two_byte: TextNumbers,
    classes: TextNumbers,
    files: TextNumbers,
    /// The number of texts in the one-byte table. The table contains classes and files.
    one_byte_count: u32,
    is_written: Vec<bool>,
    /// Buffers for the frames of one stack, the innermost frame first. They are stored only for their reserved memory.
    nested: Vec<Vec<u8>>,
    message: Vec<u8>,
    part: Vec<u8>,
}

/// The numbers of texts in one table of the format.
#[derive(Debug, Default)]
struct TextNumbers {
    by_text: Vec<u32>,
    count: u32,
}

impl TextNumbers {
    fn get(&self, text: GraphTextId) -> Option<u32> {
        self.by_text.get(text.index()).copied().filter(|number| *number != UNWRITTEN)
    }

    fn set(&mut self, text: GraphTextId, number: u32) {
        if self.by_text.len() <= text.index() {
            self.by_text.resize(text.index() + 1, UNWRITTEN);
        }
        self.by_text[text.index()] = number;
    }
}

impl Encoder {
    /// The first message, preceded by its length.
    pub(super) fn metadata(&mut self, creation_time: Option<u64>) -> Vec<u8> {
        let mut message = Vec::new();
        // A message without fields would have the length 0. A length of 0 ends the stream.
        number_field(&mut message, 1, creation_time.unwrap_or(u64::MAX));
        let mut out = Vec::new();
        number(&mut out, message.len() as u64);
        out.extend_from_slice(&message);
        out
    }

    /// Appends a node's message, preceded by its length, to `out`.
    pub(super) fn node(
        &mut self,
        texts: &TextTable,
        frames: &FrameTable,
        (id, size, kind): (NodeId, u64, &NodeKind),
        edges: impl Iterator<Item = (NodeId, Option<GraphTextId>)>,
        out: &mut Vec<u8>,
    ) {
        let mut message = core::mem::take(&mut self.message);
        message.clear();
        number_field(&mut message, 1, id.0);
        self.two_byte(texts, kind.type_name, (2, 3), &mut message);
        number_field(&mut message, 4, size);
        for (referent, name) in edges {
            let mut edge = core::mem::take(&mut self.part);
            edge.clear();
            number_field(&mut edge, 1, referent.0);
            if let Some(name) = name {
                self.two_byte(texts, name, (2, 3), &mut edge);
            }
            bytes_field(&mut message, 5, &edge);
            self.part = edge;
        }
        if let Some(stack) = kind.stack.filter(|stack| *stack != GraphFrameId::EMPTY_STACK) {
            self.stack(texts, frames, stack, &mut message);
        }
        if let Some(class) = kind.class_name {
            let latin_1 = |texts: &TextTable| {
                let text = texts.get(class);
                text.encode_utf16().map(|unit| u8::try_from(unit).unwrap_or(b'?')).collect::<Vec<_>>()
            };
            match self.classes.get(class) {
                Some(known) => number_field(&mut message, 8, known.into()),
                None => {
                    bytes_field(&mut message, 7, &latin_1(texts));
                    self.classes.set(class, self.one_byte_count);
                    self.one_byte_count += 1;
                }
            }
        }
        if kind.coarse_type != CoarseType::Other {
            number_field(&mut message, 9, kind.coarse_type.number().into());
        }
        if let Some(file) = kind.file_name {
            match self.files.get(file) {
                Some(known) => number_field(&mut message, 11, known.into()),
                None => {
                    bytes_field(&mut message, 10, texts.get(file).to_string().as_bytes());
                    self.files.set(file, self.one_byte_count);
                    self.one_byte_count += 1;
                }
            }
        }
        if let Some(name) = kind.descriptive_name {
            self.two_byte(texts, name, (12, 13), &mut message);
        }
        number(out, message.len() as u64);
        out.extend_from_slice(&message);
        self.message = message;
    }

    /// Appends a new text in the first field, or the number of a known text in the second field.
    #[inline]
    fn two_byte(&mut self, texts: &TextTable, text: GraphTextId, fields: (u32, u32), out: &mut Vec<u8>) {
        match self.two_byte.get(text) {
            Some(known) => number_field(out, fields.1, known.into()),
            None => {
                let units: Vec<u8> = texts.get(text).encode_utf16().flat_map(u16::to_le_bytes).collect();
                bytes_field(out, fields.0, &units);
                self.two_byte.set(text, self.two_byte.count);
                self.two_byte.count += 1;
            }
        }
    }

    /// Appends a stack. A frame that is already in the file is written as its id. Other frames are written in full,
    /// with their callers nested inside, up to the depth that a reader accepts.
    fn stack(&mut self, texts: &TextTable, frames: &FrameTable, youngest: GraphFrameId, out: &mut Vec<u8>) {
        if self.is_written.len() < frames.len() {
            self.is_written.resize(frames.len(), false);
        }
        let mut nested = core::mem::take(&mut self.nested);
        let mut depth = 0;
        let mut next = Some(youngest);
        let mut known = None;
        // The format numbers texts from the innermost frame to the outermost.
        while let Some(frame) = next {
            if self.is_written[frame.index()] {
                known = Some(frame);
                break;
            }
            if depth == MAX_NESTED_FRAMES as usize {
                break;
            }
            self.is_written[frame.index()] = true;
            if nested.len() == depth {
                nested.push(Vec::new());
            }
            let data = &mut nested[depth];
            data.clear();
            let parts = frames.get(frame);
            number_field(data, 1, frame_number(frame));
            number_field(data, 3, parts.line.into());
            number_field(data, 4, parts.column.into());
            self.two_byte(texts, parts.source, (5, 6), data);
            if let Some(function) = parts.function {
                self.two_byte(texts, function, (7, 8), data);
            }
            number_field(data, 9, parts.is_system.into());
            number_field(data, 10, parts.is_self_hosted.into());
            depth += 1;
            next = parts.parent;
        }
        // Builds nested messages, starting with the outermost frame.
        let mut frame = Vec::new();
        if let Some(known) = known {
            // The reference to a known frame is one more nested message, and may exceed the depth.
            if depth < MAX_NESTED_FRAMES as usize || depth == 0 {
                number_field(&mut frame, 2, frame_number(known));
            }
        }
        for data in nested[..depth].iter_mut().rev() {
            if !frame.is_empty() {
                bytes_field(data, 2, &frame);
            }
            frame.clear();
            bytes_field(&mut frame, 1, data);
        }
        bytes_field(out, 6, &frame);
        self.nested = nested;
    }
}

/// The id of a frame in the format.
fn frame_number(frame: GraphFrameId) -> u64 {
    frame.index() as u64 + 1
}

#[inline]
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn number_field(out: &mut Vec<u8>, field: u32, value: u64) {
    number(out, (field << 3).into());
    number(out, value);
}

#[inline]
fn bytes_field(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    number(out, (field << 3 | 2).into());
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
