//! Columns of numbers and texts, in the format that the page reads.
//!
//! A number is a sequence of groups of seven bits, the lowest group first. The top bit of a byte is set if more groups
//! follow. The lowest bit of a signed number is its sign.

/// A column of numbers.
#[derive(Default)]
pub(super) struct NumberColumn(Vec<u8>);

impl NumberColumn {
    pub(super) fn push(&mut self, number: impl Into<u128>) {
        let mut number = number.into();
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn push_signed(&mut self, number: i128) {
        self.push(((number << 1) ^ (number >> 127)).cast_unsigned());
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A column of texts, and the length of each text in UTF-16 units, as JavaScript counts.
#[derive(Default)]
pub(super) struct TextColumn {
    lengths: NumberColumn,
    bytes: Vec<u8>,
}

impl TextColumn {
    pub(super) fn push(&mut self, text: &str) {
        let length = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        self.lengths.push(length as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Returns the lengths, then the texts.
    pub(super) fn into_bytes(self) -> (Vec<u8>, Vec<u8>) {
        (self.lengths.into_bytes(), self.bytes)
    }
}
