//! The unpacked stream, cut into messages. Only one message is in memory at a time.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::{GzDecoder, ZlibDecoder};

use super::wire::{self, Message};
use crate::error::{MessageError, Problem, SnapshotError};

/// Bytes unpacked at once.
const STEP: usize = 128 * 1024;

enum Decoder<R> {
    Gzip(GzDecoder<R>),
    Zlib(ZlibDecoder<R>),
    /// Between two members of a gzip stream.
    Between(R),
    End,
}

pub(super) struct Messages<R> {
    decoder: Decoder<R>,
    buffer: Vec<u8>,
    /// What of the buffer is filled and not yet given out.
    start: usize,
    end: usize,
    /// Of `start`, in the unpacked stream.
    offset: u64,
    /// Messages given out.
    count: u64,
    max_message: u64,
}

impl<R: Read> Messages<BufReader<R>> {
    pub(super) fn new(file: R, max_message: u64) -> Result<Self, SnapshotError> {
        let mut file = BufReader::with_capacity(64 * 1024, file);
        let start = match file.fill_buf().map_err(SnapshotError::Io)? {
            [] => return Err(SnapshotError::Empty),
            [0x1f, ..] => Decoder::Between(file),
            // The method deflate with any window; two bytes that are a multiple of 31.
            [cmf, flags, ..] if cmf & 0xf == 8 && u16::from_be_bytes([*cmf, *flags]) % 31 == 0 => {
                Decoder::Zlib(ZlibDecoder::new(file))
            }
            _ => return Err(SnapshotError::NotCompressed),
        };
        Ok(Self {
            decoder: start,
            buffer: vec![0; 2 * STEP],
            start: 0,
            end: 0,
            offset: 0,
            count: 0,
            max_message,
        })
    }
}

impl<R: BufRead> Messages<R> {
    /// Unpacks some more; `false` at the end.
    ///
    /// A stream that is merely cut is no error here: the message that is not whole then is one.
    fn fill(&mut self) -> Result<bool, SnapshotError> {
        if self.buffer.len() - self.end < STEP {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() - self.end < STEP {
                self.buffer.resize((self.buffer.len() * 2).max(self.end + STEP), 0);
            }
        }
        loop {
            let room = &mut self.buffer[self.end..];
            let read = match &mut self.decoder {
                Decoder::Gzip(decoder) => decoder.read(room),
                Decoder::Zlib(decoder) => decoder.read(room),
                Decoder::Between(file) => match file.fill_buf() {
                    // What follows the last member is ignored.
                    Ok([0x1f, ..]) => {
                        self.next_member();
                        continue;
                    }
                    Ok(_) => Ok(0),
                    Err(error) => return Err(SnapshotError::Io(error)),
                },
                Decoder::End => Ok(0),
            };
            match read {
                Ok(0) => match core::mem::replace(&mut self.decoder, Decoder::End) {
                    Decoder::Gzip(decoder) => self.decoder = Decoder::Between(decoder.into_inner()),
                    _ => return Ok(false),
                },
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(true);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    self.decoder = Decoder::End;
                    return Ok(false);
                }
                Err(error) => {
                    let unpacked = self.offset + (self.end - self.start) as u64;
                    // The header of a further member: not gzip after all, so ignored.
                    if unpacked > 0 && self.member_is_new() {
                        self.decoder = Decoder::End;
                        return Ok(false);
                    }
                    return Err(SnapshotError::Damaged(unpacked, error));
                }
            }
        }
    }

    fn next_member(&mut self) {
        if let Decoder::Between(file) = core::mem::replace(&mut self.decoder, Decoder::End) {
            self.decoder = Decoder::Gzip(GzDecoder::new(file));
        }
    }

    fn member_is_new(&self) -> bool {
        matches!(&self.decoder, Decoder::Gzip(decoder) if decoder.header().is_none())
    }

    /// Bytes given out.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn error(&self, field: &'static str, offset: u64, problem: Problem) -> MessageError {
        MessageError { message: self.count.saturating_sub(1), field, offset, problem }
    }

    fn next_error(&self, problem: Problem) -> SnapshotError {
        MessageError { message: self.count, field: "", offset: self.offset, problem }.into()
    }

    /// The next message; `None` at the end of the stream, which a length of 0 or a broken one is,
    /// too.
    pub(super) fn next(&mut self) -> Result<Option<Message<'_>>, SnapshotError> {
        let (length, bytes) = loop {
            match wire::number(&self.buffer[self.start..self.end]) {
                Some(found) => break found,
                None if self.end - self.start >= 10 => return Ok(None),
                None => {
                    if !self.fill()? {
                        return Ok(None);
                    }
                }
            }
        };
        // The length is a number of 32 bits.
        let length = length & u64::from(u32::MAX);
        if length == 0 {
            return if self.count == 0 { Err(self.next_error(Problem::ZeroLength)) } else { Ok(None) };
        }
        if length > self.max_message {
            return Err(self.next_error(Problem::TooLong(length)));
        }
        self.start += bytes as usize;
        self.offset += u64::from(bytes);
        let length = length as usize;
        while self.end - self.start < length {
            if !self.fill()? {
                let missing = length - (self.end - self.start);
                return Err(self.next_error(Problem::Truncated(missing as u64)));
            }
        }
        let message = Message { bytes: &self.buffer[self.start..self.start + length], offset: self.offset };
        self.start += length;
        self.offset += length as u64;
        self.count += 1;
        Ok(Some(message))
    }
}
