//! Chunks of a recording, with header, compression and checksum.

use core::fmt;
use std::io::{self, Read};

use super::{CHUNK_HEADER, MAGIC, MOST_PAYLOAD};

/// The kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkKind {
    /// The process and its options: [`RecordedProcess`](super::RecordedProcess).
    About = 1,
    /// Executables and libraries: [`decode_modules`](super::decode_modules).
    Modules = 2,
    /// Nodes of the tree of stacks: [`NodeDecoder`](super::NodeDecoder).
    Nodes = 3,
    /// Names of threads: [`decode_threads`](super::decode_threads).
    Threads = 4,
    /// Events of a thread: [`EventDecoder`](super::EventDecoder).
    Events = 5,
    /// Blocks that were live when the recording started: [`LiveDecoder`](super::LiveDecoder).
    Live = 6,
    /// The time of a tick: [`ClockReading`](super::ClockReading).
    Clock = 7,
    /// A tick before which all events are in the file: [`Watermark`](super::Watermark).
    Watermark = 8,
    /// The end of the recording: [`RecordingEnd`](super::RecordingEnd).
    End = 9,
    /// Changes of the program's mappings: [`MappingDecoder`](super::MappingDecoder). Older readers skip them.
    Mappings = 10,
}

impl ChunkKind {
    const ALL: [Self; 10] = [
        Self::About,
        Self::Modules,
        Self::Nodes,
        Self::Threads,
        Self::Events,
        Self::Live,
        Self::Clock,
        Self::Watermark,
        Self::End,
        Self::Mappings,
    ];

    /// The kind with this number; `None` if it is unknown.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

const COMPRESSED: u8 = 1;

/// The maximum number of bytes of a chunk, header and payload, for a payload of this length.
pub fn most_framed(payload: usize) -> usize {
    CHUNK_HEADER + lz4_flex::block::get_maximum_output_size(payload).max(payload)
}

/// Writes a chunk into `out`, compressed if that makes it smaller, and returns its length in bytes. Returns `None` if
/// the payload has more than [`MOST_PAYLOAD`] bytes, or if `out` has less room than [`most_framed`].
pub fn frame_chunk(kind: ChunkKind, payload: &[u8], out: &mut [u8]) -> Option<usize> {
    if payload.len() > MOST_PAYLOAD || out.len() < most_framed(payload.len()) {
        return None;
    }
    let (header, body) = out.split_at_mut(CHUNK_HEADER);
    let compressed = lz4_flex::block::compress_into(payload, body).ok();
    let (flags, stored) = match compressed.filter(|length| *length < payload.len()) {
        Some(length) => (COMPRESSED, length),
        None => {
            body[..payload.len()].copy_from_slice(payload);
            (0, payload.len())
        }
    };
    header[..4].copy_from_slice(&[kind as u8, flags, 0, 0]);
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..12].copy_from_slice(&(stored as u32).to_le_bytes());
    let sum = checksum(&header[..12], &body[..stored]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    Some(CHUNK_HEADER + stored)
}

/// Appends a chunk to a list.
///
/// # Panics
///
/// Panics if the payload has more than [`MOST_PAYLOAD`] bytes.
pub fn push_chunk(out: &mut Vec<u8>, kind: ChunkKind, payload: &[u8]) {
    let before = out.len();
    out.resize(before + most_framed(payload.len()), 0);
    let length = frame_chunk(kind, payload, &mut out[before..]).expect("the payload is not too long");
    out.truncate(before + length);
}

fn checksum(header: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(stored);
    hasher.finalize()
}

/// A chunk of a file.
#[derive(Clone, Copy, Debug)]
pub struct RecordingChunk<'a> {
    /// The number of the kind, which may be unknown.
    pub number: u8,
    /// The payload, decompressed.
    pub payload: &'a [u8],
    /// The offset of the chunk in the file, in bytes.
    pub offset: u64,
}

impl RecordingChunk<'_> {
    /// The kind; `None` if it is unknown.
    pub fn kind(&self) -> Option<ChunkKind> {
        ChunkKind::from_number(self.number)
    }
}

/// The reason why a chunk cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChunkError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file does not start like a recording.
    NoRecording,
    /// The file has an unknown version.
    Version(u8),
    /// The file ends in the middle of the chunk at this offset: its writer was killed, or its disk was full.
    Truncated(u64),
    /// The chunk at this offset is longer than a chunk may be.
    TooLong(u64),
    /// The chunk at this offset is damaged: its checksum, its length or its compression is wrong.
    Damaged(u64),
}

impl ChunkError {
    /// Whether only one chunk is damaged, so that later chunks can be read.
    pub fn is_of_one_chunk(&self) -> bool {
        matches!(self, Self::Damaged(_))
    }
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NoRecording => f.write_str("it does not start like a recording of DMD"),
            Self::Version(version) => {
                write!(
                    f,
                    "it has version {version} of the format, but only version {} is supported",
                    MAGIC[7]
                )
            }
            Self::Truncated(offset) => write!(f, "it ends in the middle of the chunk at byte {offset}"),
            Self::TooLong(offset) => {
                write!(f, "the chunk at byte {offset} has more than {MOST_PAYLOAD} bytes")
            }
            Self::Damaged(offset) => write!(f, "the chunk at byte {offset} is damaged"),
        }
    }
}

impl core::error::Error for ChunkError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads the chunks of a recording, one after another. The reader keeps one chunk at a time, in slightly more than
/// twice [`MOST_PAYLOAD`] bytes at most.
#[derive(Debug)]
pub struct ChunkReader<R> {
    source: R,
    offset: u64,
    stored: Vec<u8>,
    payload: Vec<u8>,
    is_at_end: bool,
}

impl<R: Read> ChunkReader<R> {
    /// Reads the first bytes of a recording.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream cannot be read, is not a recording, or has an unknown version.
    pub fn open(mut source: R) -> Result<Self, ChunkError> {
        let mut magic = [0; MAGIC.len()];
        let length = fill_buffer(&mut source, &mut magic).map_err(ChunkError::Io)?;
        let (name, version) = (MAGIC.len() - 1, magic[MAGIC.len() - 1]);
        if length < magic.len() || magic[..name] != MAGIC[..name] {
            return Err(ChunkError::NoRecording);
        }
        if version != MAGIC[name] {
            return Err(ChunkError::Version(version));
        }
        let offset = magic.len() as u64;
        Ok(Self { source, offset, stored: Vec::new(), payload: Vec::new(), is_at_end: false })
    }

    /// The offset of the next chunk, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next chunk. `None` at the end of the file, and after any error for which
    /// [`is_of_one_chunk`](ChunkError::is_of_one_chunk) returns false.
    #[allow(clippy::should_implement_trait, reason = "a chunk borrows from its reader")]
    pub fn next(&mut self) -> Option<Result<RecordingChunk<'_>, ChunkError>> {
        if self.is_at_end {
            return None;
        }
        let offset = self.offset;
        match self.read() {
            Ok(None) => {
                self.is_at_end = true;
                None
            }
            Ok(Some((number, length))) => Some(Ok(RecordingChunk {
                number,
                payload: self.payload.get(..length).unwrap_or_default(),
                offset,
            })),
            Err(error) => {
                self.is_at_end = !error.is_of_one_chunk();
                Some(Err(error))
            }
        }
    }

    /// Reads the next chunk, and returns its kind and the length of its payload.
    fn read(&mut self) -> Result<Option<(u8, usize)>, ChunkError> {
        let offset = self.offset;
        let mut header = [0; CHUNK_HEADER];
        match fill_buffer(&mut self.source, &mut header).map_err(ChunkError::Io)? {
            0 => return Ok(None),
            CHUNK_HEADER => {}
            _ => return Err(ChunkError::Truncated(offset)),
        }
        let word = |at: usize| {
            let bytes = header[at..].first_chunk().copied().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let (raw, stored, sum) = (word(4) as usize, word(8) as usize, word(12));
        if raw > MOST_PAYLOAD || stored > MOST_PAYLOAD {
            return Err(ChunkError::TooLong(offset));
        }
        // The list grows with the bytes that the file really has: the length in the header may be wrong.
        self.stored.clear();
        let mut part = (&mut self.source).take(stored as u64);
        let read = part.read_to_end(&mut self.stored).map_err(ChunkError::Io)?;
        if read < stored {
            return Err(ChunkError::Truncated(offset));
        }
        self.offset += (CHUNK_HEADER + stored) as u64;
        if checksum(&header[..12], &self.stored) != sum {
            return Err(ChunkError::Damaged(offset));
        }
        if header[1] & COMPRESSED == 0 {
            core::mem::swap(&mut self.stored, &mut self.payload);
            return if raw == stored { Ok(Some((header[0], raw))) } else { Err(ChunkError::Damaged(offset)) };
        }
        if self.payload.len() < raw {
            self.payload.resize(raw, 0);
        }
        match lz4_flex::block::decompress_into(&self.stored, &mut self.payload[..raw]) {
            Ok(length) if length == raw => Ok(Some((header[0], raw))),
            _ => Err(ChunkError::Damaged(offset)),
        }
    }
}

/// Fills a buffer until it is full or the stream ends. Returns the number of bytes read.
///
/// # Errors
///
/// Returns an error if the stream cannot be read.
pub fn fill_buffer(source: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match source.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
