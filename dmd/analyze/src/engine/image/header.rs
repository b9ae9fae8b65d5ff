//! Finds the header of the engine's tables in writable memory of the program and its libraries.

use dmd_format::tables::{HEADER, HEADER_WITHOUT_THREADS, MAGIC, PLANES, RECORDS_ALL, VERSION};

use super::FileMapping;
use super::memory::{ImageMemory, u64_at};
use crate::error::AnalyzeError;

/// The size of the pieces in which the writable data of a program is read.
const PIECE: u64 = 1 << 20;

/// The maximum number of bytes of writable data that the search reads in one mapping.
const MOST: u64 = 1 << 28;

/// The addresses of the tables, and the number of stacks.
pub(super) struct TableHeader {
    /// The roots of all planes; 0 for a plane without blocks.
    pub(super) roots: [u64; PLANES],
    pub(super) segments: u64,
    pub(super) stacks: u32,
    /// The address of the table of threads; 0 if there are no threads.
    pub(super) threads: u64,
}

impl TableHeader {
    /// Finds the header of the engine that records. A program that links an engine and runs under `libdmd.so` has two
    /// headers.
    pub(super) fn find(memory: &ImageMemory<'_>, mappings: &[FileMapping]) -> Result<Self, AnalyzeError> {
        let mut refused = None;
        for mapping in mappings.iter().filter(|mapping| mapping.is_writable) {
            for bytes in candidates(memory, mapping)? {
                match Self::read(memory, &bytes) {
                    Ok(header) => return Ok(header),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
        }
        let nowhere =
            || AnalyzeError::Image("this memory has no engine of DMD: run the program under DMD".to_owned());
        Err(refused.unwrap_or_else(nowhere))
    }

    fn read(memory: &ImageMemory<'_>, header: &[u8]) -> Result<Self, AnalyzeError> {
        let refuse = |reason: String| Err(AnalyzeError::Image(reason));
        let version = u64_at(header, 24) as u32;
        if version != VERSION {
            return refuse(format!(
                "the tables of DMD have version {version} (expected {VERSION}): use DMD of the same release"
            ));
        }
        let word = |at: usize| u64_at(header, at);
        let mut phase = [0];
        memory.fill(word(32), &mut phase)?;
        if phase[0] != RECORDS_ALL {
            return refuse("DMD does not record every block of this process".to_owned());
        }
        let below = memory.words(word(40), 1)?;
        if below != [0] {
            return refuse("DMD records only a sample of the small blocks: omit --sample-below".to_owned());
        }
        let mut roots = [0; PLANES];
        for (root, address) in roots.iter_mut().zip(memory.words(word(56), PLANES)?) {
            *root = address;
        }
        roots[0] = word(48);
        let mut stacks = [0; 4];
        memory.fill(word(72), &mut stacks)?;
        let has_threads = u64_at(header, 28) as u32 >= HEADER as u32;
        let threads = if has_threads { memory.words(word(80), 1)?[0] } else { 0 };
        Ok(Self { roots, segments: word(64), stacks: u32::from_le_bytes(stacks), threads })
    }
}

/// The headers in a mapping: each has the magic number, followed by the header's own address.
fn candidates(memory: &ImageMemory<'_>, mapping: &FileMapping) -> Result<Vec<[u8; HEADER]>, AnalyzeError> {
    let mut found = Vec::new();
    let end = mapping.end.min(mapping.start.saturating_add(MOST));
    let mut at = mapping.start;
    let mut piece = Vec::new();
    while at < end {
        piece.clear();
        // A header may cross the end of a piece.
        piece.resize((end - at).min(PIECE + HEADER as u64) as usize, 0);
        let filled = memory.read(at, &mut piece)?;
        for offset in (0..filled.saturating_sub(HEADER_WITHOUT_THREADS - 1)).step_by(8) {
            let bytes = &piece[offset..filled.min(offset + HEADER)];
            if bytes.starts_with(&MAGIC) && u64_at(bytes, MAGIC.len()) == at + offset as u64 {
                let mut header = [0; HEADER];
                header[..bytes.len()].copy_from_slice(bytes);
                found.push(header);
            }
        }
        at = at.saturating_add(PIECE);
    }
    Ok(found)
}
