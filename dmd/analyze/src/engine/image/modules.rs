//! The program and its libraries. The kernel maps their ELF headers into memory (ELF-64; System V ABI, chapters 4 and
//! 5).

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};

use dmd_format::recording::RecordedModule;

use super::FileMapping;
use super::memory::{ImageMemory, u64_at};

const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
const BUILD_ID: u32 = 3;

/// The maximum size of notes. Linkers write far fewer bytes.
const MOST_NOTES: u64 = 64 << 10;

/// The size of the first page of a file, which contains the headers.
const FIRST: usize = 4096;

/// The suffix that the kernel adds to the path of a deleted file.
const DELETED: &str = " (deleted)";

/// The modules, by address.
pub(super) fn find(memory: &ImageMemory<'_>, mappings: &[FileMapping]) -> Vec<RecordedModule> {
    let mut modules: Vec<RecordedModule> = Vec::new();
    let mut mappings: Vec<&FileMapping> = mappings.iter().collect();
    mappings.sort_by_key(|mapping| mapping.start);
    for mapping in mappings {
        let path = mapping.path.strip_suffix(DELETED).unwrap_or(&mapping.path).as_bytes();
        match modules.last_mut() {
            Some(last) if mapping.offset > 0 && last.path == path => last.end = mapping.end,
            _ if mapping.offset == 0 => modules.push(module(memory, mapping, path)),
            _ => {}
        }
    }
    modules
}

fn module(memory: &ImageMemory<'_>, mapping: &FileMapping, path: &[u8]) -> RecordedModule {
    let headers = ElfHeaders::read(memory, mapping).unwrap_or_default();
    RecordedModule {
        path: path.to_vec(),
        build_id: headers.build_id,
        start: mapping.start,
        end: mapping.end,
        bias: mapping.start.wrapping_sub(headers.first),
        unloaded_since: None,
    }
}

#[derive(Default)]
struct ElfHeaders {
    /// The address that the file states for the mapping's first byte.
    first: u64,
    build_id: String,
}

impl ElfHeaders {
    /// Reads the headers from memory or, if a core file leaves out unchanged pages, from the module's file.
    fn read(memory: &ImageMemory<'_>, mapping: &FileMapping) -> Option<Self> {
        let is_elf = |start: &[u8]| start.starts_with(b"\x7fELF\x02\x01") && start.len() >= ELF_HEADER;
        let mut start = vec![0; FIRST];
        let mut file = None;
        let filled = memory.read(mapping.start, &mut start).ok()?;
        start.truncate(filled);
        if !is_elf(&start) {
            // Skips other files: opening a pipe would block.
            fs::metadata(&mapping.path).ok().filter(fs::Metadata::is_file)?;
            let opened = file.insert(File::open(&mapping.path).ok()?);
            start.clear();
            opened.take(FIRST as u64).read_to_end(&mut start).ok().filter(|_| is_elf(&start))?;
        }
        let (at, each, count) = (u64_at(&start, 32), u64_at(&start, 54) as u16, u64_at(&start, 56) as u16);
        if usize::from(each) != PROGRAM_HEADER {
            return None;
        }
        let table = start.get(usize::try_from(at).ok()?..)?;
        let headers = || table.chunks_exact(PROGRAM_HEADER).take(count.into());
        let kind = |header: &[u8]| u64_at(header, 0) as u32;
        let load = headers().find(|header| kind(header) == LOAD)?;
        let first = u64_at(load, 16).wrapping_sub(u64_at(load, 8));
        let mut build_id = String::new();
        for header in headers().filter(|header| kind(header) == NOTE) {
            let (offset, address, bytes) = (u64_at(header, 8), u64_at(header, 16), u64_at(header, 32));
            let mut notes = vec![0; bytes.min(MOST_NOTES) as usize];
            let filled = match &mut file {
                None => memory.read(mapping.start.wrapping_sub(first).wrapping_add(address), &mut notes).ok(),
                Some(file) => file.seek(SeekFrom::Start(offset)).and_then(|_| file.read(&mut notes)).ok(),
            };
            notes.truncate(filled.unwrap_or(0));
            if let Some(found) = id_of(&notes) {
                build_id = found;
                break;
            }
        }
        Some(Self { first, build_id })
    }
}

/// The build id in a list of notes, in hexadecimal.
fn id_of(mut notes: &[u8]) -> Option<String> {
    while notes.len() >= 12 {
        let [name, bytes, kind] = [0, 4, 8].map(|at| u64_at(notes, at) as u32);
        let padded = |length: u32| (length as usize).next_multiple_of(4);
        let owner = notes.get(12..12 + padded(name))?;
        let id = notes.get(12 + padded(name)..)?;
        if kind == BUILD_ID && owner == b"GNU\0" {
            let id = id.get(..bytes as usize)?;
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = id.get(padded(bytes)..)?;
    }
    None
}
