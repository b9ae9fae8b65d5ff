//! The texts of a graph in WTF-8. Equal texts are stored once.
//!
//! WTF-8 is UTF-8 that may also contain lone surrogates. The two-byte texts of a snapshot may contain lone
//! surrogates, but a `str` cannot. Equal texts have equal ids.

use core::fmt::{self, Write as _};
use core::num::NonZeroU32;
use std::borrow::Cow;

use memory_report::TextPool;

/// A text that may contain lone surrogates. The texts of a graph are borrowed, and the texts of a report are owned.
///
/// `Display` writes a lone surrogate as U+FFFD.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphText<'a>(Cow<'a, [u8]>);

impl<'a> GraphText<'a> {
    fn borrowed(wtf8: &'a [u8]) -> Self {
        Self(Cow::Borrowed(wtf8))
    }

    /// The text as a `str`; `None` if it contains a lone surrogate.
    pub fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }

    /// An owned copy of the text, independent of the graph.
    pub fn into_owned(self) -> GraphText<'static> {
        GraphText(Cow::Owned(self.0.into_owned()))
    }

    /// The same text, borrowed from this value.
    pub fn reborrow(&self) -> GraphText<'_> {
        GraphText(Cow::Borrowed(&self.0))
    }

    /// The bytes of the text, in WTF-8.
    pub fn as_wtf8(&self) -> &[u8] {
        &self.0
    }

    /// Whether the text contains `part`.
    pub fn contains(&self, part: &str) -> bool {
        part.is_empty() || self.0.windows(part.len()).any(|window| window == part.as_bytes())
    }

    /// The UTF-16 code units of the text.
    pub fn encode_utf16(&self) -> impl Iterator<Item = u16> + '_ {
        TextPieces(&self.0).flat_map(|piece| match piece {
            TextPiece::Text(text) => CodeUnits::Text(text.encode_utf16()),
            TextPiece::Surrogate(unit) => CodeUnits::Surrogate(Some(unit)),
        })
    }

    /// Appends the text as a JSON string; a lone surrogate becomes `\uXXXX`.
    pub(crate) fn write_json(&self, out: &mut String) {
        out.push('"');
        for piece in TextPieces(&self.0) {
            match piece {
                TextPiece::Text(text) => escape(text, out),
                TextPiece::Surrogate(unit) => {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        out.push('"');
    }
}

impl<'a> From<&'a str> for GraphText<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<String> for GraphText<'static> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text.into_bytes()))
    }
}

impl PartialEq<str> for GraphText<'_> {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for GraphText<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl fmt::Display for GraphText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => f.pad(text),
            None => TextPieces(&self.0).try_for_each(|piece| match piece {
                TextPiece::Text(text) => f.write_str(text),
                TextPiece::Surrogate(_) => f.write_char(char::REPLACEMENT_CHARACTER),
            }),
        }
    }
}

impl fmt::Debug for GraphText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut json = String::new();
        self.write_json(&mut json);
        f.write_str(&json)
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

enum TextPiece<'a> {
    Text(&'a str),
    Surrogate(u16),
}

/// Splits a text into runs of UTF-8 and the surrogates between them.
struct TextPieces<'a>(&'a [u8]);

impl<'a> Iterator for TextPieces<'a> {
    type Item = TextPiece<'a>;

    fn next(&mut self) -> Option<TextPiece<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let chunk = self.0.utf8_chunks().next()?;
        let valid = chunk.valid();
        if !valid.is_empty() {
            self.0 = &self.0[valid.len()..];
            return Some(TextPiece::Text(valid));
        }
        // The next three bytes are a surrogate: a WTF-8 text contains no other bytes that are not UTF-8.
        let (unit, rest) = match *self.0 {
            [_, second, third, ref rest @ ..] => {
                (0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f), rest)
            }
            _ => (0xfffd, &[][..]),
        };
        self.0 = rest;
        Some(TextPiece::Surrogate(unit))
    }
}

enum CodeUnits<'a> {
    Text(core::str::EncodeUtf16<'a>),
    Surrogate(Option<u16>),
}

impl Iterator for CodeUnits<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        match self {
            Self::Text(units) => units.next(),
            Self::Surrogate(unit) => unit.take(),
        }
    }
}

/// The number of a text in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphTextId(NonZeroU32);

impl GraphTextId {
    /// The position of the text in the order of first use, from 0.
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All texts of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextTable {
    texts: TextPool<Vec<u8>>,
    /// A buffer for converting a two-byte text into WTF-8.
    scratch: Vec<u8>,
}

impl TextTable {
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Bytes of memory that the texts take.
    pub(crate) fn memory(&self) -> usize {
        let (bytes, ends, numbers) = self.texts.parts();
        bytes.capacity() + ends.capacity() * size_of::<usize>() + numbers.capacity() * (size_of::<u32>() + 1)
    }

    /// All texts, in the order of their positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = GraphText<'_>> {
        self.texts.iter().map(GraphText::borrowed)
    }

    pub(crate) fn get(&self, id: GraphTextId) -> GraphText<'_> {
        GraphText::borrowed(self.texts.get(id.0.get() - 1))
    }

    /// Adds a text, or finds an equal text that was added before. `None` if there are already 2^32 - 1 texts.
    pub(crate) fn intern(&mut self, wtf8: &[u8]) -> Option<GraphTextId> {
        NonZeroU32::new(self.texts.intern(wtf8)? + 1).map(GraphTextId)
    }

    pub(crate) fn intern_utf16(&mut self, units: impl Iterator<Item = u16>) -> Option<GraphTextId> {
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        for unit in char::decode_utf16(units) {
            match unit {
                Ok(c) => scratch.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(lone) => {
                    let unit = lone.unpaired_surrogate();
                    let low = |shift: u16| 0x80 | (unit >> shift & 0x3f) as u8;
                    scratch.extend_from_slice(&[0xed, low(6), low(0)]);
                }
            }
        }
        let id = self.intern(&scratch);
        self.scratch = scratch;
        id
    }

    /// Frees the memory reserved for more texts.
    pub(crate) fn shrink(&mut self) {
        self.texts.shrink();
        self.scratch = Vec::new();
    }
}
