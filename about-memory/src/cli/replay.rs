//! A stream that can be read again from its start, to try a second file format after the first.

use std::io::{self, Chain, Cursor, Read};

/// Keeps at most this many bytes. A file names its format at its start, so more bytes are not needed.
const MOST_KEPT: usize = 4 << 20;

pub(crate) struct ReplayableInput<R> {
    stream: R,
    /// `None` after more than [`MOST_KEPT`] bytes were read.
    kept: Option<Vec<u8>>,
}

impl<R: Read> ReplayableInput<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, kept: Some(Vec::new()) }
    }

    /// The stream from its start, or `None` after more than [`MOST_KEPT`] bytes were read.
    pub(crate) fn again(self) -> Option<Chain<Cursor<Vec<u8>>, R>> {
        Some(Cursor::new(self.kept?).chain(self.stream))
    }
}

impl<R: Read> Read for ReplayableInput<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(into)?;
        match &mut self.kept {
            Some(kept) if kept.len() + length <= MOST_KEPT => kept.extend_from_slice(&into[..length]),
            kept => *kept = None,
        }
        Ok(length)
    }
}
