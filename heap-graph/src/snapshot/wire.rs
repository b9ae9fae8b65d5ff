//! Decodes protobuf: numbers, and the fields of a message.

use core::ops::Range;

use super::error::MessageProblem;

/// The value of a field.
#[derive(Clone, Debug)]
pub(super) enum FieldValue {
    /// A number. The caller knows its sign and width.
    Number(u64),
    /// Bytes: a text or a message.
    Bytes(MessagePart),
    /// A value of eight or four bytes, or a group. No field of a snapshot has such a value.
    Other,
}

/// The bytes of a message, and their position in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageBytes<'a> {
    pub(super) bytes: &'a [u8],
    /// The position of the first byte in the unpacked stream.
    pub(super) offset: u64,
}

impl<'a> MessageBytes<'a> {
    pub(super) fn whole(&self) -> MessagePart {
        // The length fits, since the stream stores it in 32 bits.
        MessagePart { start: 0, end: self.bytes.len() as u32 }
    }

    #[inline]
    pub(super) fn get(&self, span: MessagePart) -> &'a [u8] {
        &self.bytes[span.range()]
    }

    pub(super) fn offset_of(&self, place: u32) -> u64 {
        self.offset + u64::from(place)
    }
}

/// A part of a message, as a range of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessagePart {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl MessagePart {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A position in the stream, and the problem there.
pub(super) type WireError = (u64, MessageProblem);

/// The depth of nested messages and groups that Firefox accepts, without the outermost message.
pub(super) const MAX_NESTED: u32 = 180;

/// Reads the fields of a message, or of a part of a message.
pub(super) struct FieldReader<'a> {
    message: MessageBytes<'a>,
    at: u32,
    end: u32,
    /// The number of messages that enclose this one.
    depth: u32,
}

impl<'a> FieldReader<'a> {
    #[inline]
    pub(super) fn new(message: MessageBytes<'a>, span: MessagePart, depth: u32) -> Self {
        Self { message, at: span.start, end: span.end, depth }
    }

    fn rest(&self) -> &'a [u8] {
        self.message.get(MessagePart { start: self.at, end: self.end })
    }

    #[inline]
    fn number(&mut self) -> Result<u64, WireError> {
        match number(self.rest()) {
            Some((value, bytes)) => {
                self.at += bytes;
                Ok(value)
            }
            None => Err((self.message.offset_of(self.at), MessageProblem::BadNumber)),
        }
    }

    /// Reads the tag at the start of a field: the field's number and the kind of its value. Like Firefox, it uses 32
    /// of the 35 bits in five bytes.
    #[inline]
    fn tag(&mut self) -> Result<(u32, u32), WireError> {
        let start = self.at;
        let tag = self.number()?;
        let tag_32 = tag as u32;
        if self.at - start > 5 || tag_32 >> 3 == 0 {
            return Err((self.message.offset_of(start), MessageProblem::BadTag(tag)));
        }
        Ok((tag_32 >> 3, tag_32 & 7))
    }

    #[inline]
    fn bytes(&mut self, length: u64) -> Result<MessagePart, WireError> {
        if length > u64::from(self.end - self.at) {
            return Err((self.message.offset_of(self.at), MessageProblem::PastTheEnd(length)));
        }
        let start = self.at;
        self.at += length as u32;
        Ok(MessagePart { start, end: self.at })
    }

    /// The next field: its number, its value and its position in the message. `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u32, FieldValue, u32)>, WireError> {
        if self.at == self.end {
            return Ok(None);
        }
        let start = self.at;
        let (number, kind) = self.tag()?;
        let value = match kind {
            0 => FieldValue::Number(self.number()?),
            2 => {
                let length = self.number()?;
                FieldValue::Bytes(self.bytes(length)?)
            }
            1 => self.bytes(8).map(|_| FieldValue::Other)?,
            5 => self.bytes(4).map(|_| FieldValue::Other)?,
            3 => self.group(number).map(|()| FieldValue::Other)?,
            _ => return Err((self.message.offset_of(start), bad_tag(number, kind))),
        };
        Ok(Some((number, value, start)))
    }

    /// Skips a group. A group has no length; an end tag with the same `number` ends it. Groups may be nested.
    #[cold]
    fn group(&mut self, number: u32) -> Result<(), WireError> {
        let deepest = MAX_NESTED.saturating_sub(self.depth) as usize;
        let mut open = vec![number];
        while let Some(innermost) = open.last().copied() {
            let start = self.at;
            if open.len() > deepest {
                return Err((self.message.offset_of(start), MessageProblem::TooNested(MAX_NESTED)));
            }
            match self.tag()? {
                (_, 0) => {
                    self.number()?;
                }
                (_, 1) => {
                    self.bytes(8)?;
                }
                (_, 2) => {
                    let length = self.number()?;
                    self.bytes(length)?;
                }
                (number, 3) => open.push(number),
                (number, 4) if number == innermost => {
                    open.pop();
                }
                (_, 5) => {
                    self.bytes(4)?;
                }
                (number, kind) => return Err((self.message.offset_of(start), bad_tag(number, kind))),
            }
        }
        Ok(())
    }
}

fn bad_tag(number: u32, kind: u32) -> MessageProblem {
    MessageProblem::BadTag(u64::from(number << 3 | kind))
}

/// Decodes a number in base 128, with the least significant digit first. Returns the number and its length in bytes.
#[inline]
pub(super) fn number(bytes: &[u8]) -> Option<(u64, u32)> {
    // Tags, lengths and most text numbers have one byte.
    if let Some(byte) = bytes.first().filter(|byte| **byte < 0x80) {
        return Some(((*byte).into(), 1));
    }
    let mut value = 0;
    for (position, byte) in (0..10).zip(bytes) {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if *byte < 0x80 {
            return Some((value, position + 1));
        }
    }
    None
}
