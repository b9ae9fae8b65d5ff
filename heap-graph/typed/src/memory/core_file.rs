//! A core file from a crash or from `gcore` (ELF-64, little-endian; System V ABI, chapters 4 and 5).

use std::fs::{self, File};
use std::path::Path;

use dmd_analyze::image::{FileMapping, StoppedThread};

use super::MemorySource;
use super::positioned::{fill_at, read_at};
use crate::error::TypedError;

/// The size of the ELF header, in bytes.
const HEADER: usize = 64;
/// The size of a program header, in bytes.
const PROGRAM_HEADER: usize = 56;

/// The kind of a segment with memory.
const LOAD: [u8; 4] = [1, 0, 0, 0];
/// The kind of a segment with notes.
const NOTE: [u8; 4] = [4, 0, 0, 0];
/// The flag of a writable segment.
const WRITABLE: u8 = 2;

/// The kind of the note with the mapped files (`NT_FILE`).
const FILES: usize = 0x4649_4c45;

/// The kind of a note with a thread's registers (`NT_PRSTATUS`).
const REGISTERS: usize = 1;
/// The position of the thread's number in the note with registers.
const NUMBER: usize = 32;
/// The position of the first register in the note with registers.
const FIRST_REGISTER: usize = 112;

/// The size of the note with registers on x86-64, in bytes.
const X86_64_BYTES: usize = 336;

/// DWARF's numbers of the general registers, in the order of the note on x86-64.
const X86_64_ORDER: [u16; 15] = [15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5];

/// The index of the next instruction's address among the registers of the note on x86-64.
const X86_64_CODE: usize = 16;
/// The index of the stack pointer.
const X86_64_STACK: usize = 19;
/// The index of the thread pointer.
const X86_64_THREAD: usize = 21;

/// The size of the note with registers on aarch64, in bytes.
const AARCH64_BYTES: usize = 392;

/// The number of general registers on aarch64. The note has them in the order of DWARF's numbers.
const AARCH64_GENERAL: u16 = 31;

/// The index of the stack pointer among the registers of the note on aarch64.
const AARCH64_STACK: usize = 31;
/// The index of the next instruction's address.
const AARCH64_CODE: usize = 32;

/// The kind of a note with a thread's `TPIDR_EL0` (`NT_ARM_TLS`).
const ARM_TLS: usize = 0x401;

/// The processors of supported core files.
const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// The largest number of threads that are read.
const MOST_THREADS: usize = 1 << 16;

/// The size of a note's header before its name, in bytes.
const NOTE_HEADER: usize = 12;

/// The size of the pieces in which notes are read. A claimed length without data then takes no memory.
const PIECE: usize = 1 << 20;

/// The ELF file type of a core file.
const CORE: u16 = 4;

/// The largest total size of notes that are read, in bytes. A thread has some kilobytes of registers.
const MOST_NOTES: u64 = 64 << 20;

/// A segment of memory in the file.
#[derive(Clone, Copy, Debug)]
struct CoreSegment {
    start: u64,
    bytes: u64,
    offset: u64,
    is_writable: bool,
}

/// The memory of a process at the time when its core file was written. The reader keeps only the table of segments
/// (at most 65,534 entries) and the positions of the notes in memory.
#[derive(Debug)]
pub struct CoreFile {
    file: File,
    /// The segments, sorted by address, without overlap.
    segments: Vec<CoreSegment>,
    /// The offset and the length of each note segment.
    notes: Vec<(u64, u64)>,
    machine: u16,
}

impl CoreFile {
    /// Opens a core file.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Io`] if the file cannot be read, [`TypedError::NotACore`] if it is not a core file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TypedError> {
        // Opening a pipe would wait, so other files are rejected first.
        if !fs::metadata(&path)?.is_file() {
            return Err(TypedError::NotACore("not a regular file"));
        }
        let file = File::open(path)?;
        let mut header = [0; HEADER];
        if fill_at(&file, &mut header, 0) < HEADER {
            return Err(TypedError::NotACore("shorter than an ELF header"));
        }
        if header[..6] != *b"\x7fELF\x02\x01" {
            return Err(TypedError::NotACore("not a 64-bit little-endian ELF file"));
        }
        let (offset, each, count) = (u64_at(&header, 32), u16_at(&header, 54), u16_at(&header, 56));
        if u16_at(&header, 16) != CORE {
            return Err(TypedError::NotACore("a program or a library"));
        }
        if usize::from(each) != PROGRAM_HEADER || count == u16::MAX {
            return Err(TypedError::NotACore("its program headers have an unknown number or size"));
        }
        let mut table = vec![0; PROGRAM_HEADER * usize::from(count)];
        if fill_at(&file, &mut table, offset) < table.len() {
            return Err(TypedError::NotACore("its program headers are not in the file"));
        }
        let of_kind =
            |kind: [u8; 4]| table.chunks_exact(PROGRAM_HEADER).filter(move |header| header[..4] == kind);
        let mut segments: Vec<CoreSegment> = of_kind(LOAD)
            .map(|header| CoreSegment {
                offset: u64_at(header, 8),
                start: u64_at(header, 16),
                bytes: u64_at(header, 32),
                is_writable: header[4] & WRITABLE != 0,
            })
            .filter(|segment| segment.bytes > 0)
            .collect();
        segments.sort_by_key(|segment| segment.start);
        let apart = |pair: &[CoreSegment]| {
            pair[0].start.checked_add(pair[0].bytes).is_some_and(|end| end <= pair[1].start)
        };
        if !segments.windows(2).all(apart) {
            return Err(TypedError::NotACore("its segments overlap"));
        }
        let notes = of_kind(NOTE).map(|header| (u64_at(header, 8), u64_at(header, 32))).collect();
        Ok(Self { file, segments, notes, machine: u16_at(&header, 18) })
    }

    /// Whether a file is an ELF file, such as a core file or a program.
    pub fn is_elf(path: impl AsRef<Path>) -> bool {
        let mut magic = [0; 4];
        // Opening a pipe would wait, so other files are rejected first.
        let is_file = fs::metadata(&path).is_ok_and(|about| about.is_file());
        let filled = is_file && File::open(path).is_ok_and(|file| fill_at(&file, &mut magic, 0) == 4);
        filled && magic == *b"\x7fELF"
    }

    /// The number of bytes of memory that are missing at the end of the file, if a limit of the system has cut it off.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Io`] if the system does not return the length of the file.
    pub fn missing(&self) -> Result<u64, TypedError> {
        let length = self.file.metadata()?.len();
        let behind = |segment: &CoreSegment| {
            let end = segment.offset.saturating_add(segment.bytes);
            end.saturating_sub(length.max(segment.offset))
        };
        Ok(self.segments.iter().map(behind).fold(0, u64::saturating_add))
    }

    /// The mappings of the process's program and libraries, for [`read_image`](dmd_analyze::image::read_image). Empty
    /// if the file has no note with mapped files.
    pub fn mappings(&self) -> Vec<FileMapping> {
        let notes = self.notes();
        let files = notes.iter().find_map(|notes| each(notes).find(|(kind, _)| *kind == FILES));
        files.and_then(|(_, files)| self.files(files)).unwrap_or_default()
    }

    /// The contents of all note segments.
    fn notes(&self) -> Vec<Vec<u8>> {
        let mut left = MOST_NOTES;
        let mut all = Vec::new();
        for (offset, bytes) in &self.notes {
            let wanted = (*bytes).min(left);
            left -= wanted;
            let mut notes = Vec::new();
            while (notes.len() as u64) < wanted {
                let start = notes.len();
                notes.resize(start + (wanted as usize - start).min(PIECE), 0);
                let filled = fill_at(&self.file, &mut notes[start..], offset.wrapping_add(start as u64));
                notes.truncate(start + filled);
                if filled == 0 {
                    break;
                }
            }
            all.push(notes);
        }
        all
    }

    /// Decodes the mappings in a note of files. The note contains their number and the page size, then for each
    /// mapping its start, its end and its offset in pages. The paths follow.
    fn files(&self, note: &[u8]) -> Option<Vec<FileMapping>> {
        let word = |at: usize| Some(u64_at(note.get(8 * at..8 * at + 8)?, 0));
        let (count, page) = (usize::try_from(word(0)?).ok()?, word(1)?);
        let mut paths = note.get(count.checked_mul(24)?.checked_add(16)?..)?.split(|byte| *byte == 0);
        let mapping = |index: usize| {
            let start = word(2 + 3 * index)?;
            Some(FileMapping {
                start,
                end: word(3 + 3 * index)?,
                offset: word(4 + 3 * index)?.saturating_mul(page),
                is_writable: self.segment(start).is_some_and(|segment| segment.is_writable),
                path: String::from_utf8_lossy(paths.next()?).into_owned(),
            })
        };
        (0..count).map(mapping).collect()
    }

    /// The last segment that starts at or before an address.
    fn segment(&self, address: u64) -> Option<CoreSegment> {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        after.checked_sub(1).map(|index| self.segments[index])
    }
}

/// Iterates over notes: their kinds and contents.
fn each(mut notes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    core::iter::from_fn(move || {
        if notes.len() < NOTE_HEADER {
            return None;
        }
        let [name, bytes, kind] = [0, 4, 8].map(|at| u32_at(notes, at) as usize);
        let contents = notes.get(NOTE_HEADER + name.next_multiple_of(4)..)?;
        let note = contents.get(..bytes)?;
        notes = contents.get(bytes.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, note))
    })
}

impl MemorySource for CoreFile {
    fn is_whole(&self) -> bool {
        true
    }

    fn threads(&self) -> Vec<StoppedThread> {
        let mut threads: Vec<StoppedThread> = Vec::new();
        for (kind, note) in self.notes().iter().flat_map(|notes| each(notes)) {
            if threads.len() >= MOST_THREADS {
                break;
            }
            match (self.machine, kind) {
                (X86_64, REGISTERS) if note.len() == X86_64_BYTES => threads.push(thread(
                    note,
                    X86_64_ORDER.iter().copied().enumerate(),
                    (X86_64_STACK, X86_64_CODE, Some(X86_64_THREAD)),
                )),
                (AARCH64, REGISTERS) if note.len() == AARCH64_BYTES => threads.push(thread(
                    note,
                    (0..AARCH64_GENERAL).map(|number| (number.into(), number)),
                    (AARCH64_STACK, AARCH64_CODE, None),
                )),
                (AARCH64, ARM_TLS) if note.len() >= 8 => match threads.last_mut() {
                    Some(thread) if thread.thread_pointer.is_none() => {
                        thread.thread_pointer = Some(u64_at(note, 0));
                    }
                    _ => threads.push(StoppedThread {
                        thread_pointer: Some(u64_at(note, 0)),
                        ..StoppedThread::default()
                    }),
                },
                _ => {}
            }
        }
        threads
    }

    fn end_of(&self, address: u64) -> Option<u64> {
        let end = self.segment(address).and_then(|segment| segment.start.checked_add(segment.bytes));
        end.filter(|end| *end > address)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < into.len() {
            let Some(address) = address.checked_add(filled as u64) else { break };
            let Some(segment) = self.segment(address) else { break };
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

/// Decodes a thread from its note of registers. The arguments are the indices and DWARF's numbers of its registers,
/// and the indices of the stack pointer, of the address of the next instruction, and of the thread pointer.
fn thread(
    note: &[u8],
    order: impl Iterator<Item = (usize, u16)>,
    (stack, code, pointer): (usize, usize, Option<usize>),
) -> StoppedThread {
    let register = |index: usize| u64_at(note, FIRST_REGISTER + 8 * index);
    let known = |index: usize| Some(register(index)).filter(|value| *value != 0);
    StoppedThread {
        number: Some(u32_at(note, NUMBER).into()).filter(|number| *number != 0),
        name: String::new(),
        thread_pointer: pointer.and_then(known),
        stack_pointer: known(stack),
        code: known(code),
        frames: Vec::new(),
        registers: order.map(|(index, number)| (number, register(index))).collect(),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
