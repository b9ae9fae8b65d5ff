//! A sliding window of validated text over a [`TextSource`].
//!
//! A parser takes text from the front. If a token ends at the window's edge, the window grows to at least twice its
//! size, and the parser takes the token again. So the work stays linear and memory stays bounded.

use std::io::Read;

use crate::error::ReadError;

use super::scan::{ScanStop, TextScan};
use super::source::TextSource;

const CHUNK: usize = 1 << 18;
/// The longest single value, in bytes; a path of several megabytes is odd but valid.
const MAX_VALUE: usize = 1 << 26;

/// A part of a source's text, as large as the parser needs.
pub struct TextWindow<R: Read> {
    source: TextSource<R>,
    raw: Vec<u8>,
    /// The number of bytes at the front of `raw` that are the start of a character whose other bytes are not read
    /// yet.
    carry: usize,
    text: String,
    at: usize,
    /// The number of bytes dropped from the front of the text.
    base: u64,
    limit: u64,
    ended: bool,
    /// The error of the source after the text so far. The parser gets it when it has taken this text.
    failed: Option<ReadError>,
}

impl<R: Read> TextWindow<R> {
    /// A window at the start of `source`. Text of more than `limit` bytes is an error.
    pub fn new(source: TextSource<R>, limit: u64) -> Self {
        Self {
            source,
            raw: vec![0; CHUNK + 4],
            carry: 0,
            text: String::new(),
            at: 0,
            base: 0,
            limit,
            ended: false,
            failed: None,
        }
    }

    /// Runs `take` on the text at the front. Runs it again with more text each time it needs more.
    ///
    /// # Errors
    ///
    /// Returns an error if `take` fails, if the source fails or ends too early, or if the text or one value is too
    /// long.
    pub fn take<T>(
        &mut self,
        mut take: impl FnMut(&mut TextScan<'_>) -> Result<T, ScanStop>,
    ) -> Result<T, ReadError> {
        loop {
            let mut scan = TextScan::new(&self.text[self.at..], self.ended);
            match take(&mut scan) {
                Ok(value) => {
                    self.at += scan.at();
                    return Ok(value);
                }
                Err(ScanStop::More) => self.more()?,
                Err(ScanStop::Expected(at, what)) => return Err(ReadError::NotJson(self.offset(at), what)),
                Err(ScanStop::TooDeep(at)) => return Err(ReadError::TooDeep(self.offset(at))),
            }
        }
    }

    /// Like [`take`](Self::take), for a value that `take` can process piece by piece: when `take` needs more text, it
    /// does not need the text before the cursor again.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`take`](Self::take).
    pub fn stream(
        &mut self,
        mut take: impl FnMut(&mut TextScan<'_>) -> Result<(), ScanStop>,
    ) -> Result<(), ReadError> {
        loop {
            let mut scan = TextScan::new(&self.text[self.at..], self.ended);
            let result = take(&mut scan);
            let at = scan.at();
            match result {
                Ok(()) => {
                    self.at += at;
                    return Ok(());
                }
                Err(ScanStop::More) => {
                    self.at += at;
                    self.more()?;
                }
                Err(ScanStop::Expected(at, what)) => return Err(ReadError::NotJson(self.offset(at), what)),
                Err(ScanStop::TooDeep(at)) => return Err(ReadError::TooDeep(self.offset(at))),
            }
        }
    }

    /// The offset of the next token in the whole text, in bytes.
    pub fn position(&self) -> u64 {
        self.offset(0)
    }

    fn offset(&self, at: usize) -> u64 {
        self.base + (self.at + at) as u64
    }

    fn more(&mut self) -> Result<(), ReadError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.ended {
            return Err(ReadError::Truncated(self.base + self.text.len() as u64));
        }
        self.text.drain(..self.at);
        self.base += self.at as u64;
        self.at = 0;
        if self.text.len() > MAX_VALUE {
            return Err(ReadError::ValueTooLong(MAX_VALUE as u64));
        }
        let goal = self.text.len() * 2 + CHUNK;
        let before = self.text.len();
        while !self.ended && self.text.len() < goal {
            match self.fill() {
                // A file that ends early still has a valid start.
                Err(error @ ReadError::Truncated(_)) if self.text.len() > before => {
                    self.failed = Some(error);
                    break;
                }
                filled => filled?,
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), ReadError> {
        let so_far = self.base + self.text.len() as u64;
        let room = &mut self.raw[self.carry..CHUNK];
        let read = self.source.read(room, so_far)?;
        let bytes = &self.raw[..self.carry + read];
        if so_far + bytes.len() as u64 > self.limit {
            return Err(ReadError::TooLarge(self.limit));
        }
        let valid = match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_some() || read == 0 => {
                return Err(ReadError::NotUtf8(so_far + error.valid_up_to() as u64));
            }
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()])
                .expect("the validation accepted this text"),
        };
        if so_far == 0 && valid.starts_with('\u{feff}') {
            self.text.push(' ');
            self.text.push_str("  ");
            self.text.push_str(&valid['\u{feff}'.len_utf8()..]);
        } else {
            self.text.push_str(valid);
        }
        let (valid, len) = (valid.len(), bytes.len());
        self.raw.copy_within(valid..len, 0);
        self.carry = len - valid;
        self.ended = read == 0;
        Ok(())
    }
}

impl<R: Read> core::fmt::Debug for TextWindow<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TextWindow").field("position", &self.position()).finish_non_exhaustive()
    }
}
