//! JSON in Firefox's layout: one space of indent for each level, and one line for each block, trace and frame.

use std::io::{self, Write};

pub(super) struct JsonWriter<W: Write> {
    out: PieceWriter<W>,
    depth: usize,
    /// Whether the next item is the first of its array or object.
    first: bool,
    /// Whether the next item is the first of its array or object within a line.
    first_inline: bool,
}

impl<W: Write> JsonWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out: PieceWriter::new(out), depth: 0, first: true, first_inline: true }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.put(b"\n")?;
        self.out.flush()
    }

    /// Passes all bytes so far on, through the compression.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn begin(&mut self, bracket: char) -> io::Result<()> {
        self.byte(bracket)?;
        self.depth += 1;
        self.first = true;
        Ok(())
    }

    fn line(&mut self) -> io::Result<()> {
        if !self.first {
            self.out.store(b",")?;
        }
        self.first = false;
        self.new_line()
    }

    fn key(&mut self, key: impl AsRef<[u8]>) -> io::Result<()> {
        self.line()?;
        self.string(key.as_ref())?;
        self.out.put(b": ")
    }

    /// Opens an array or an object with a line for each item.
    pub(super) fn open(&mut self, key: &str, bracket: char) -> io::Result<()> {
        self.key(key)?;
        self.begin(bracket)
    }

    pub(super) fn end(&mut self, bracket: char) -> io::Result<()> {
        self.depth -= 1;
        if !self.first {
            self.new_line()?;
        }
        self.first = false;
        self.byte(bracket)
    }

    pub(super) fn number(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.key(key)?;
        self.decimal(value)
    }

    pub(super) fn float(&mut self, key: &str, value: f64) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{value}")
    }

    #[cfg(target_os = "linux")]
    pub(super) fn boolean(&mut self, key: &str, value: bool) -> io::Result<()> {
        self.key(key)?;
        self.out.put(if value { b"true" } else { b"false" })
    }

    pub(super) fn null(&mut self, key: &str) -> io::Result<()> {
        self.key(key)?;
        self.out.put(b"null")
    }

    pub(super) fn text(&mut self, key: impl AsRef<[u8]>, value: &[u8]) -> io::Result<()> {
        self.key(key)?;
        self.string(value)
    }

    /// Opens an array or an object on a new line.
    pub(super) fn item(&mut self, bracket: char) -> io::Result<()> {
        self.line()?;
        self.first_inline = true;
        self.byte(bracket)
    }

    /// Opens an array or an object with a key, on a new line.
    pub(super) fn key_item(&mut self, key: &[u8], bracket: char) -> io::Result<()> {
        self.key(key)?;
        self.first_inline = true;
        self.byte(bracket)
    }

    pub(super) fn end_inline(&mut self, bracket: char) -> io::Result<()> {
        self.byte(bracket)
    }

    fn separator(&mut self) -> io::Result<()> {
        if !self.first_inline {
            self.out.store(b", ")?;
        }
        self.first_inline = false;
        Ok(())
    }

    /// Writes a key. `key` must not contain characters that need an escape.
    fn inline_key(&mut self, key: &str) -> io::Result<()> {
        self.separator()?;
        self.out.store(b"\"")?;
        self.out.put(key.as_bytes())?;
        self.out.store(b"\": ")
    }

    pub(super) fn inline_number(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.inline_key(key)?;
        self.decimal(value)
    }

    /// Writes the key of a trace or of a frame as a value.
    pub(super) fn inline_base32(&mut self, key: &str, number: u32) -> io::Result<()> {
        self.inline_key(key)?;
        self.base32(number)
    }

    pub(super) fn inline_base32_item(&mut self, number: u32) -> io::Result<()> {
        self.separator()?;
        self.base32(number)
    }

    fn base32(&mut self, number: u32) -> io::Result<()> {
        self.out.store(b"\"")?;
        let key = base32(number);
        let room = self.out.room(key.as_bytes().len())?;
        for (place, digit) in room.iter_mut().zip(key.as_bytes()) {
            *place = *digit;
        }
        self.out.store(b"\"")
    }

    pub(super) fn inline_true(&mut self, key: &str) -> io::Result<()> {
        self.inline_key(key)?;
        self.out.put(b"true")
    }

    pub(super) fn inline_text(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        self.inline_key(key)?;
        self.string(value)
    }

    pub(super) fn inline_hex(&mut self, key: &str, value: usize) -> io::Result<()> {
        self.inline_key(key)?;
        write!(self.out, "\"{value:x}\"")
    }

    pub(super) fn inline_open(&mut self, key: &str) -> io::Result<()> {
        self.inline_key(key)?;
        self.first_inline = true;
        self.out.put(b"[")
    }

    pub(super) fn inline_close(&mut self) -> io::Result<()> {
        self.first_inline = false;
        self.out.put(b"]")
    }

    pub(super) fn inline_text_item(&mut self, value: &[u8]) -> io::Result<()> {
        self.separator()?;
        self.string(value)
    }

    pub(super) fn inline_hex_item(&mut self, value: usize) -> io::Result<()> {
        self.separator()?;
        write!(self.out, "\"{value:x}\"")
    }

    pub(super) fn inline_number_item(&mut self, value: i64) -> io::Result<()> {
        self.separator()?;
        write!(self.out, "{value}")
    }

    /// Writes a bracket.
    fn byte(&mut self, bracket: char) -> io::Result<()> {
        self.out.store(&[bracket as u8])
    }

    fn new_line(&mut self) -> io::Result<()> {
        const INDENT: &[u8] = b"\n        ";
        self.out.put(&INDENT[..INDENT.len().min(1 + self.depth)])
    }

    /// Writes a number. A dump may have millions of numbers, and the standard library's formatter is slower.
    fn decimal(&mut self, mut value: u64) -> io::Result<()> {
        let digits = value.checked_ilog10().unwrap_or(0) as usize + 1;
        for digit in self.out.room(digits)?.iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
        Ok(())
    }

    /// Writes a string. Bytes that are not UTF-8 become U+FFFD.
    fn string(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.put(b"\"")?;
        if text.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
            self.out.put(text)?;
            return self.out.put(b"\"");
        }
        for chunk in text.utf8_chunks() {
            let mut written = 0;
            let valid = chunk.valid();
            for (at, byte) in valid.bytes().enumerate() {
                let escape: &[u8] = match byte {
                    b'"' => b"\\\"",
                    b'\\' => b"\\\\",
                    0x08 => b"\\b",
                    0x0c => b"\\f",
                    b'\n' => b"\\n",
                    b'\r' => b"\\r",
                    b'\t' => b"\\t",
                    0..0x20 => {
                        self.out.put(&valid.as_bytes()[written..at])?;
                        write!(self.out, "\\u{byte:04x}")?;
                        written = at + 1;
                        continue;
                    }
                    _ => continue,
                };
                self.out.put(&valid.as_bytes()[written..at])?;
                self.out.put(escape)?;
                written = at + 1;
            }
            self.out.put(&valid.as_bytes()[written..])?;
            if !chunk.invalid().is_empty() {
                self.out.put("\u{FFFD}".as_bytes())?;
            }
        }
        self.out.put(b"\"")
    }
}

/// Writes many short pieces. `BufWriter` copies each piece by a call of the C library. That takes longer than a copy
/// of known length.
struct PieceWriter<W> {
    out: W,
    bytes: Vec<u8>,
    used: usize,
}

impl<W: Write> PieceWriter<W> {
    const LENGTH: usize = 64 << 10;

    fn new(out: W) -> Self {
        Self { out, bytes: vec![0; Self::LENGTH], used: 0 }
    }

    /// Returns room for the next bytes. `length` is at most [`LENGTH`](Self::LENGTH).
    #[inline(always)]
    fn room(&mut self, length: usize) -> io::Result<&mut [u8]> {
        if self.bytes.len() - self.used < length {
            self.write_out()?;
        }
        let start = self.used;
        self.used += length;
        Ok(&mut self.bytes[start..self.used])
    }

    #[inline(never)]
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > Self::LENGTH {
            self.write_out()?;
            return self.out.write_all(bytes);
        }
        self.room(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Like [`put`](Self::put), for a piece of known length that each block has. The copy compiles to a few stores.
    #[inline(always)]
    fn store<const LENGTH: usize>(&mut self, bytes: &[u8; LENGTH]) -> io::Result<()> {
        self.room(LENGTH)?.copy_from_slice(bytes);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn write_out(&mut self) -> io::Result<()> {
        let used = core::mem::take(&mut self.used);
        self.out.write_all(&self.bytes[..used])
    }
}

impl<W: Write> Write for PieceWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.out.flush()
    }
}

/// The text of a key in Firefox's form: base 32 with the digits A to Z and a to f.
pub(super) struct Base32Text {
    digits: [u8; 7],
    start: usize,
}

pub(super) fn base32(mut number: u32) -> Base32Text {
    let mut key = Base32Text { digits: [0; 7], start: 7 };
    loop {
        key.start -= 1;
        key.digits[key.start] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"[number as usize % 32];
        number /= 32;
        if number == 0 {
            return key;
        }
    }
}

impl Base32Text {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

impl AsRef<[u8]> for Base32Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}
