//! A core file, of a crash or of `gcore` (ELF-64, little-endian; System V ABI, chapters 4 and 5).

use std::fs::File;
use std::path::Path;

use super::Memory;
use super::positioned::{fill_at, read_at};
use crate::error::TypedError;

/// The size of the ELF header and of a program header in bytes.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// A segment of memory that the file contains.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    bytes: u64,
    offset: u64,
}

/// The memory of a process when its core file was written. The reader keeps only the table of segments in memory,
/// which has at most 65,534 entries.
#[derive(Debug)]
pub struct CoreFile {
    file: File,
    /// Sorted by address, without overlap.
    segments: Vec<Segment>,
}

impl CoreFile {
    /// Opens a core file.
    ///
    /// # Errors
    ///
    /// [`TypedError::Io`] if the file cannot be read, [`TypedError::NotACore`] if it is not a core file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TypedError> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(TypedError::NotACore("not a regular file"));
        }
        let mut header = [0; HEADER];
        if fill_at(&file, &mut header, 0) < HEADER {
            return Err(TypedError::NotACore("shorter than an ELF header"));
        }
        if header[..6] != *b"\x7fELF\x02\x01" {
            return Err(TypedError::NotACore("not a 64-bit little-endian ELF file"));
        }
        let (offset, each, count) = (u64_at(&header, 32), u16_at(&header, 54), u16_at(&header, 56));
        if u16_at(&header, 16) != 4 {
            return Err(TypedError::NotACore("an ELF file of another type"));
        }
        if usize::from(each) != PROGRAM_HEADER || count == u16::MAX {
            return Err(TypedError::NotACore("its program headers have another size or an extended count"));
        }
        let mut table = vec![0; PROGRAM_HEADER * usize::from(count)];
        if fill_at(&file, &mut table, offset) < table.len() {
            return Err(TypedError::NotACore("its program headers are not in the file"));
        }
        let mut segments: Vec<Segment> = table
            .chunks_exact(PROGRAM_HEADER)
            // PT_LOAD
            .filter(|header| header[..4] == [1, 0, 0, 0])
            .map(|header| Segment {
                offset: u64_at(header, 8),
                start: u64_at(header, 16),
                bytes: u64_at(header, 32),
            })
            .filter(|segment| segment.bytes > 0)
            .collect();
        segments.sort_by_key(|segment| segment.start);
        let apart = |pair: &[Segment]| {
            pair[0].start.checked_add(pair[0].bytes).is_some_and(|end| end <= pair[1].start)
        };
        if !segments.windows(2).all(apart) {
            return Err(TypedError::NotACore("its segments overlap"));
        }
        Ok(Self { file, segments })
    }
}

impl Memory for CoreFile {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < into.len() {
            let Some(address) = address.checked_add(filled as u64) else { break };
            let after = self.segments.partition_point(|segment| segment.start <= address);
            let Some(segment) = after.checked_sub(1).map(|index| self.segments[index]) else { break };
            let skip = address - segment.start;
            let left = segment.bytes.saturating_sub(skip);
            let wanted = left.min((into.len() - filled) as u64) as usize;
            let Some(offset) = segment.offset.checked_add(skip) else { break };
            match read_at(&self.file, &mut into[filled..filled + wanted], offset) {
                Ok(more) if more > 0 => filled += more,
                _ => break,
            }
        }
        filled
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
