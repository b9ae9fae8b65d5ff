//! The bytes of a recording: reads chunks at any place, and searches for the next good chunk after a damaged chunk.

use std::io::{BufReader, Chain, Read, Seek, SeekFrom};

use dmd_format::recording::{
    CHUNK_HEADER, ChunkError, ChunkKind, ChunkReader, MAGIC, MOST_PAYLOAD, fill_buffer,
};
use memory_report::ReadError;

use crate::error::AnalyzeError;

/// A file, or bytes in memory.
pub(crate) trait RecordingBytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> RecordingBytes for T {}

type ChunksAt<'f> = ChunkReader<Chain<&'static [u8], BufReader<&'f mut Box<dyn RecordingBytes>>>>;

/// The maximum number of bytes that a reader checks again in a file with damaged chunks, as a multiple of the file's
/// length.
const TRIES: u64 = 4;
/// The number of bytes that a reader may check again in any file, even in a short one.
const LEAST_ALLOWANCE: u64 = 1 << 28;
/// The buffer size for checking whether a chunk is good, in bytes.
const LOOK: usize = 1 << 13;

/// The bytes of a recording.
pub(crate) struct RecordingSource {
    bytes: Box<dyn RecordingBytes>,
    pub(crate) length: u64,
}

impl core::fmt::Debug for RecordingSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Source").field("length", &self.length).finish_non_exhaustive()
    }
}

impl RecordingSource {
    /// Checks the first bytes of a file.
    pub(crate) fn new(mut bytes: impl Read + Seek + Send + 'static) -> Result<Self, AnalyzeError> {
        let length = bytes.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
        bytes.seek(SeekFrom::Start(0)).map_err(ReadError::Io)?;
        ChunkReader::open(&mut bytes).map_err(failure)?;
        Ok(Self { bytes: Box::new(bytes), length })
    }

    /// Reads the chunks from a place.
    pub(crate) fn chunks(&mut self, offset: u64, buffer: usize) -> Result<ChunksAt<'_>, AnalyzeError> {
        self.bytes.seek(SeekFrom::Start(offset)).map_err(ReadError::Io)?;
        let rest = BufReader::with_capacity(buffer, &mut self.bytes);
        ChunkReader::open(MAGIC.as_slice().chain(rest)).map_err(failure)
    }

    /// Calls `each` for every good chunk, with its kind, its payload and its place. Returns the damaged ranges: the
    /// start of each, and the place of the next good chunk or the end of the file.
    pub(crate) fn each(
        &mut self,
        mut each: impl FnMut(ChunkKind, &[u8], u64) -> Result<(), AnalyzeError>,
    ) -> Result<Vec<(u64, u64)>, AnalyzeError> {
        let mut damaged = Vec::new();
        let mut allowance = self.length.saturating_mul(TRIES).max(LEAST_ALLOWANCE);
        let mut start = MAGIC.len() as u64;
        while start < self.length {
            let base = start - MAGIC.len() as u64;
            let mut chunks = self.chunks(start, 1 << 16)?;
            let failed = loop {
                match chunks.next() {
                    None => return Ok(damaged),
                    Some(Ok(chunk)) => {
                        if let Some(kind) = chunk.kind() {
                            each(kind, chunk.payload, base + chunk.offset)?;
                        }
                    }
                    Some(Err(ChunkError::Io(error))) => return Err(ReadError::Io(error).into()),
                    Some(Err(
                        ChunkError::Damaged(at) | ChunkError::Truncated(at) | ChunkError::TooLong(at),
                    )) => {
                        break base + at;
                    }
                    Some(Err(error)) => return Err(failure(error)),
                }
            };
            start = self.next_good(failed + 1, &mut allowance)?;
            damaged.push((failed, start));
        }
        Ok(damaged)
    }

    /// The place of the first good chunk at or after `from`, or the end of the file. `allowance` limits the bytes that
    /// are read to check candidates.
    fn next_good(&mut self, from: u64, allowance: &mut u64) -> Result<u64, AnalyzeError> {
        const WINDOW: usize = 1 << 16;
        let mut at = from;
        let mut window = vec![0; WINDOW];
        while at + (CHUNK_HEADER as u64) <= self.length {
            self.bytes.seek(SeekFrom::Start(at)).map_err(ReadError::Io)?;
            let read = fill_buffer(&mut self.bytes, &mut window).map_err(ReadError::Io)?;
            let places = read.saturating_sub(CHUNK_HEADER - 1);
            for candidate in 0..places {
                let Some(stored) = stored(&window[candidate..candidate + CHUNK_HEADER]) else { continue };
                if *allowance == 0 {
                    return Ok(self.length);
                }
                *allowance = allowance.saturating_sub((CHUNK_HEADER + stored).max(LOOK) as u64);
                let offset = at + candidate as u64;
                if let Some(Ok(_)) = self.chunks(offset, LOOK)?.next() {
                    return Ok(offset);
                }
            }
            if places == 0 {
                break;
            }
            at += places as u64;
        }
        Ok(self.length)
    }

    /// Reads one chunk that was valid in an earlier pass. `None` if it is no longer valid.
    pub(crate) fn payload(&mut self, offset: u64) -> Result<Option<Vec<u8>>, AnalyzeError> {
        let mut chunks = self.chunks(offset, 1 << 13)?;
        let payload = match chunks.next() {
            Some(Ok(chunk)) => Some(chunk.payload.to_vec()),
            _ => None,
        };
        Ok(payload)
    }
}

/// The stored length, if the bytes look like a chunk's header.
fn stored(header: &[u8]) -> Option<usize> {
    let word =
        |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
    let is_header = ChunkKind::from_number(header[0]).is_some() && header[1] <= 1 && header[2..4] == [0, 0];
    (is_header && word(4) <= MOST_PAYLOAD && word(8) <= MOST_PAYLOAD).then(|| word(8))
}

pub(crate) fn failure(error: ChunkError) -> AnalyzeError {
    match error {
        ChunkError::Io(error) => ReadError::Io(error).into(),
        error => AnalyzeError::Recording(error.to_string()),
    }
}
