//! The messages of a snapshot, as encoded. The reader interprets them.
//!
//! As in any protobuf reader, unknown fields and fields with a wrong encoding are skipped. If a field occurs several
//! times, its last value counts; messages in the field are merged.

use super::error::MessageProblem;
use super::wire::{FieldReader, FieldValue, MAX_NESTED, MessageBytes, MessagePart, WireError};

/// The depth of nested frames that Firefox accepts: each frame is two messages.
pub(super) const MAX_NESTED_FRAMES: u32 = MAX_NESTED / 2;

/// A text, or the number of an earlier text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum TextOrRef {
    #[default]
    None,
    Text(MessagePart),
    /// The number, and its position in the stream.
    Ref(u64, u32),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawEdge {
    /// The position of the message's start.
    pub(super) start: u32,
    pub(super) referent: Option<u64>,
    pub(super) name: TextOrRef,
}

/// The frame in a node's field for its stack, or in a frame's field for its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawFrame {
    /// The position of the message's start.
    pub(super) start: u32,
    pub(super) content: FrameContent,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum FrameContent {
    Neither,
    /// An index in [`RawNode::frames`].
    Data(usize),
    /// The id of an earlier frame, and its position in the stream.
    Ref(u64, u32),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameData {
    /// The position of the message's start.
    pub(super) start: u32,
    pub(super) id: Option<u64>,
    pub(super) parent: Option<RawFrame>,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
    pub(super) source: TextOrRef,
    pub(super) function: TextOrRef,
    pub(super) is_system: Option<bool>,
    pub(super) is_self_hosted: Option<bool>,
}

/// A node. The reader reuses it for the next node, so that the memory for edges stays reserved.
#[derive(Debug, Default)]
pub(super) struct RawNode {
    pub(super) id: Option<u64>,
    pub(super) type_name: TextOrRef,
    pub(super) size: Option<u64>,
    pub(super) edges: Vec<RawEdge>,
    pub(super) stack: Option<RawFrame>,
    pub(super) class_name: TextOrRef,
    /// The number, and its position in the stream.
    pub(super) coarse_type: (u32, u32),
    pub(super) file_name: TextOrRef,
    pub(super) descriptive_name: TextOrRef,
    pub(super) frames: Vec<FrameData>,
}

/// The time in `Metadata`. If the message contains several times, the last time counts.
pub(super) fn metadata(message: MessageBytes<'_>) -> Result<Option<u64>, WireError> {
    let mut time = None;
    let mut fields = FieldReader::new(message, message.whole(), 0);
    while let Some(field) = fields.next()? {
        if let (1, FieldValue::Number(number), _) = field {
            time = Some(number);
        }
    }
    Ok(time)
}

impl RawNode {
    pub(super) fn read(&mut self, message: MessageBytes<'_>) -> Result<(), WireError> {
        let (mut edges, mut frames) = (core::mem::take(&mut self.edges), core::mem::take(&mut self.frames));
        edges.clear();
        frames.clear();
        *self = Self { edges, frames, ..Self::default() };
        let mut fields = FieldReader::new(message, message.whole(), 0);
        while let Some((number, value, start)) = fields.next()? {
            match (number, value) {
                (5, FieldValue::Bytes(span)) => self.edges.push(RawEdge::read(message, span)?),
                (1, FieldValue::Number(id)) => self.id = Some(id),
                (2, FieldValue::Bytes(text)) => self.type_name = TextOrRef::Text(text),
                (3, FieldValue::Number(text)) => self.type_name = TextOrRef::Ref(text, start),
                (4, FieldValue::Number(size)) => self.size = Some(size),
                (6, FieldValue::Bytes(span)) => self.stack = Some(self.frame(message, span, self.stack, 1)?),
                (7, FieldValue::Bytes(text)) => self.class_name = TextOrRef::Text(text),
                (8, FieldValue::Number(text)) => self.class_name = TextOrRef::Ref(text, start),
                (9, FieldValue::Number(coarse)) => self.coarse_type = (coarse as u32, start),
                (10, FieldValue::Bytes(text)) => self.file_name = TextOrRef::Text(text),
                (11, FieldValue::Number(text)) => self.file_name = TextOrRef::Ref(text, start),
                (12, FieldValue::Bytes(text)) => self.descriptive_name = TextOrRef::Text(text),
                (13, FieldValue::Number(text)) => self.descriptive_name = TextOrRef::Ref(text, start),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a frame, and merges it into an earlier frame of the same field, if there is one.
    fn frame(
        &mut self,
        message: MessageBytes<'_>,
        span: MessagePart,
        before: Option<RawFrame>,
        depth: u32,
    ) -> Result<RawFrame, WireError> {
        if depth > MAX_NESTED_FRAMES {
            return Err((message.offset_of(span.start), MessageProblem::TooDeep(MAX_NESTED_FRAMES)));
        }
        let mut frame = before.unwrap_or(RawFrame { start: span.start, content: FrameContent::Neither });
        let mut fields = FieldReader::new(message, span, 2 * depth - 1);
        while let Some((number, value, start)) = fields.next()? {
            match (number, value) {
                (1, FieldValue::Bytes(span)) => {
                    let place = match frame.content {
                        FrameContent::Data(place) => place,
                        _ => {
                            self.frames.push(FrameData { start: span.start, ..FrameData::default() });
                            self.frames.len() - 1
                        }
                    };
                    frame.content = FrameContent::Data(place);
                    self.frame_data(message, span, place, depth)?;
                }
                (2, FieldValue::Number(id)) => frame.content = FrameContent::Ref(id, start),
                _ => {}
            }
        }
        Ok(frame)
    }

    fn frame_data(
        &mut self,
        message: MessageBytes<'_>,
        span: MessagePart,
        place: usize,
        depth: u32,
    ) -> Result<(), WireError> {
        let mut data = self.frames[place];
        let mut fields = FieldReader::new(message, span, 2 * depth);
        while let Some((number, value, start)) = fields.next()? {
            match (number, value) {
                (1, FieldValue::Number(id)) => data.id = Some(id),
                (2, FieldValue::Bytes(span)) => {
                    data.parent = Some(self.frame(message, span, data.parent, depth + 1)?);
                }
                (3, FieldValue::Number(line)) => data.line = Some(line as u32),
                (4, FieldValue::Number(column)) => data.column = Some(column as u32),
                (5, FieldValue::Bytes(text)) => data.source = TextOrRef::Text(text),
                (6, FieldValue::Number(text)) => data.source = TextOrRef::Ref(text, start),
                (7, FieldValue::Bytes(text)) => data.function = TextOrRef::Text(text),
                (8, FieldValue::Number(text)) => data.function = TextOrRef::Ref(text, start),
                (9, FieldValue::Number(yes)) => data.is_system = Some(yes != 0),
                (10, FieldValue::Number(yes)) => data.is_self_hosted = Some(yes != 0),
                _ => {}
            }
        }
        self.frames[place] = data;
        Ok(())
    }
}

impl RawEdge {
    #[inline]
    fn read(message: MessageBytes<'_>, span: MessagePart) -> Result<Self, WireError> {
        let mut edge = Self { start: span.start, ..Self::default() };
        let mut fields = FieldReader::new(message, span, 1);
        while let Some((number, value, start)) = fields.next()? {
            match (number, value) {
                (1, FieldValue::Number(id)) => edge.referent = Some(id),
                (2, FieldValue::Bytes(text)) => edge.name = TextOrRef::Text(text),
                (3, FieldValue::Number(text)) => edge.name = TextOrRef::Ref(text, start),
                _ => {}
            }
        }
        Ok(edge)
    }
}
