//! Unpacks the stream and splits it into messages. Only one message at a time is in memory.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use flate2::bufread::{GzDecoder, ZlibDecoder};

use super::error::{MessageError, MessageProblem, SnapshotError};
use super::options::SnapshotReadOptions;
use super::wire::{self, MessageBytes};

/// The number of bytes to unpack at once.
const STEP: usize = 128 * 1024;

/// Unpacks a file, on any thread.
struct Unpacker<R> {
    decoder: Decoder<R>,
    /// Whether a complete member, a gzip or zlib stream in the file, has been read.
    is_whole: bool,
}

enum Decoder<R> {
    Gzip(GzDecoder<R>),
    Zlib(ZlibDecoder<R>),
    /// The file, at a position before a member or after the last member.
    Between(R),
    End,
}

impl<R: Read> Unpacker<BufReader<R>> {
    fn new(file: R) -> Result<Self, SnapshotError> {
        let mut file = BufReader::with_capacity(64 * 1024, file);
        match file.fill_buf().map_err(SnapshotError::Io)? {
            [] => return Err(SnapshotError::Empty),
            [0x1f, ..] => {}
            // The header of zlib: the method deflate with any window size. The two bytes as a number are a multiple
            // of 31.
            [cmf, flags, ..] if cmf & 0xf == 8 && u16::from_be_bytes([*cmf, *flags]) % 31 == 0 => {}
            _ => return Err(SnapshotError::NotCompressed),
        }
        Ok(Self { decoder: Decoder::Between(file), is_whole: false })
    }
}

/// The reason why the unpacker stops.
enum UnpackError {
    /// The system cannot read the file.
    File(io::Error),
    /// The data is damaged. The number is the count of further bytes unpacked before the damage.
    Data(usize, io::Error),
}

impl<R: BufRead> Unpacker<R> {
    /// Unpacks up to `room.len()` further bytes. Returns their number; 0 at the end.
    ///
    /// A truncated stream is not an error here: the incomplete message causes an error later. If a later member is
    /// damaged, its bytes in `room` are lost, as in Firefox.
    fn read(&mut self, room: &mut [u8]) -> Result<usize, UnpackError> {
        let mut filled = 0;
        // The start of the current member in `room`.
        let mut start = 0;
        while filled < room.len() {
            let read = match &mut self.decoder {
                Decoder::Gzip(decoder) => decoder.read(&mut room[filled..]),
                Decoder::Zlib(decoder) => decoder.read(&mut room[filled..]),
                Decoder::Between(file) => match file.fill_buf() {
                    Ok([first, ..]) if *first == 0x1f || first & 0xf == 8 => {
                        let is_gzip = *first == 0x1f;
                        if let Decoder::Between(file) = self.take() {
                            self.decoder = match is_gzip {
                                true => Decoder::Gzip(GzDecoder::new(file)),
                                false => Decoder::Zlib(ZlibDecoder::new(file)),
                            };
                        }
                        continue;
                    }
                    // Like Firefox, this ignores data after the last member.
                    Ok(_) => break,
                    Err(error) => return Err(UnpackError::File(error)),
                },
                Decoder::End => break,
            };
            match read {
                Ok(0) => {
                    self.decoder = match self.take() {
                        Decoder::Gzip(decoder) => Decoder::Between(decoder.into_inner()),
                        Decoder::Zlib(decoder) => Decoder::Between(decoder.into_inner()),
                        other => other,
                    };
                    self.is_whole = true;
                    start = filled;
                }
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.take();
                    break;
                }
                Err(error) if self.is_no_member(&error) => {
                    self.take();
                    filled = start;
                    break;
                }
                Err(error) => return Err(UnpackError::Data(filled, error)),
            }
        }
        Ok(filled)
    }

    /// Whether the error is in data that follows a complete member and only starts like a member. As in Firefox, this
    /// data is ignored.
    fn is_no_member(&self, error: &io::Error) -> bool {
        self.is_whole && matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
    }

    fn take(&mut self) -> Decoder<R> {
        core::mem::replace(&mut self.decoder, Decoder::End)
    }
}

/// The source of unpacked bytes.
enum UnpackSource<R> {
    Here(Box<Unpacker<R>>),
    /// Another thread. It is at most [`AHEAD`] steps ahead, and ends when the receiver is dropped.
    Elsewhere(Receiver<Result<Vec<u8>, UnpackError>>),
}

/// The number of steps that the other thread may be ahead.
const AHEAD: usize = 8;

pub(super) struct MessageStream<R> {
    source: UnpackSource<R>,
    buffer: Vec<u8>,
    /// The start of the part of the buffer that the caller has not received.
    start: usize,
    end: usize,
    /// The position of `start` in the unpacked stream.
    offset: u64,
    /// The number of messages that the caller has received.
    count: u64,
    max_message: u64,
    /// The largest allowed number of unpacked bytes.
    max_bytes: u64,
}

impl<R: Read> MessageStream<BufReader<R>> {
    pub(super) fn new(file: R, options: &SnapshotReadOptions) -> Result<Self, SnapshotError> {
        Ok(Self::from_source(UnpackSource::Here(Box::new(Unpacker::new(file)?)), options))
    }
}

impl<R: Read + Send + 'static> MessageStream<BufReader<R>> {
    /// Unpacks on another thread, since unpacking takes about as long as all other work.
    pub(super) fn on_two_threads(file: R, options: &SnapshotReadOptions) -> Result<Self, SnapshotError> {
        let mut unpacker = Unpacker::new(file)?;
        let (steps, receiver) = sync_channel(AHEAD);
        let unpack = move || loop {
            let mut step = vec![0; STEP];
            let result = unpacker.read(&mut step).map(|bytes| {
                step.truncate(bytes);
                step
            });
            let is_last = !matches!(&result, Ok(step) if !step.is_empty());
            if steps.send(result).is_err() || is_last {
                break;
            }
        };
        thread::Builder::new().name("unpack-snapshot".to_owned()).spawn(unpack).map_err(SnapshotError::Io)?;
        Ok(Self::from_source(UnpackSource::Elsewhere(receiver), options))
    }
}

impl<R: BufRead> MessageStream<R> {
    fn from_source(source: UnpackSource<R>, options: &SnapshotReadOptions) -> Self {
        Self {
            source,
            buffer: vec![0; 2 * STEP],
            start: 0,
            end: 0,
            offset: 0,
            count: 0,
            max_message: options.max_message_bytes,
            max_bytes: options.max_bytes,
        }
    }

    /// Unpacks more bytes; `false` at the end.
    fn fill(&mut self) -> Result<bool, SnapshotError> {
        if self.buffer.len() - self.end < STEP {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() - self.end < STEP {
                self.buffer.resize((self.buffer.len() * 2).max(self.end + STEP), 0);
            }
        }
        let room = &mut self.buffer[self.end..];
        let read = match &mut self.source {
            UnpackSource::Here(unpacker) => unpacker.read(room),
            UnpackSource::Elsewhere(steps) => match steps.recv() {
                Ok(Ok(step)) => {
                    room[..step.len()].copy_from_slice(&step);
                    Ok(step.len())
                }
                Ok(Err(stuck)) => Err(stuck),
                // The thread has sent its last step and has ended.
                Err(_) => Ok(0),
            },
        };
        match read {
            Ok(bytes) => {
                self.end += bytes;
                Ok(bytes > 0)
            }
            Err(UnpackError::File(error)) => Err(SnapshotError::Io(error)),
            Err(UnpackError::Data(lost, error)) => {
                let unpacked = self.offset + (self.end - self.start + lost) as u64;
                Err(SnapshotError::Damaged(unpacked, error))
            }
        }
    }

    /// The number of bytes that the caller has received.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn error(&self, field: &'static str, offset: u64, problem: MessageProblem) -> MessageError {
        MessageError { message: self.count.saturating_sub(1), field, offset, problem }
    }

    fn next_error(&self, problem: MessageProblem) -> SnapshotError {
        MessageError { message: self.count, field: "", offset: self.offset, problem }.into()
    }

    /// The next message; `None` at the end of the stream. An invalid length also ends the stream, and so does a length
    /// of 0 after the first message.
    pub(super) fn next(&mut self) -> Result<Option<MessageBytes<'_>>, SnapshotError> {
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
        // A length in this format has 32 bits.
        let length = length & u64::from(u32::MAX);
        if length == 0 {
            return if self.count == 0 { Err(self.next_error(MessageProblem::ZeroLength)) } else { Ok(None) };
        }
        if length > self.max_message {
            return Err(self.next_error(MessageProblem::TooLong(length)));
        }
        if self.offset + u64::from(bytes) + length > self.max_bytes {
            return Err(self.next_error(MessageProblem::TooManyBytes(self.max_bytes)));
        }
        self.start += bytes as usize;
        self.offset += u64::from(bytes);
        let length = length as usize;
        while self.end - self.start < length {
            if !self.fill()? {
                let missing = length - (self.end - self.start);
                return Err(self.next_error(MessageProblem::Truncated(missing as u64)));
            }
        }
        let message =
            MessageBytes { bytes: &self.buffer[self.start..self.start + length], offset: self.offset };
        self.start += length;
        self.offset += length as u64;
        self.count += 1;
        Ok(Some(message))
    }
}
