//! Writes a core file of a process that goes on, as `gcore` does.

use std::fs;
use std::path::Path;

use typed_heap::{Memory as _, ProcessMemory};

const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// Writes a core file: the memory of all mappings, and a note of their files.
pub(crate) fn write(pid: u32, path: &Path) {
    let memory = ProcessMemory::of(pid).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut segments = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap());
        let flags = if words.next().unwrap().contains('w') { 6_u32 } else { 4 };
        if end >> 63 == 0 {
            let mut bytes = vec![0; (end - start) as usize];
            let filled = memory.read(start, &mut bytes);
            bytes.truncate(filled);
            segments.push((start, flags, bytes));
        }
    }
    let files = memory.mappings().unwrap();
    let mut note: Vec<u8> = [files.len() as u64, 4096].iter().flat_map(|word| word.to_le_bytes()).collect();
    for file in &files {
        note.extend([file.start, file.end, file.offset / 4096].iter().flat_map(|word| word.to_le_bytes()));
    }
    for file in &files {
        note.extend(file.path.bytes().chain([0]));
    }
    let header = [5, note.len() as u32, 0x4649_4c45];
    let mut notes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    notes.extend(*b"CORE\0\0\0\0");
    notes.extend(note);

    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(ELF_HEADER, 0);
    file[16] = 4;
    file[32] = ELF_HEADER as u8;
    file[54] = PROGRAM_HEADER as u8;
    file[56..58].copy_from_slice(&(1 + segments.len() as u16).to_le_bytes());
    let mut offset = ELF_HEADER + PROGRAM_HEADER * (1 + segments.len());
    let mut segment = |kind: u32, flags: u32, start: u64, bytes: &[u8]| {
        file.extend([kind, flags].iter().flat_map(|word| word.to_le_bytes()));
        let length = bytes.len() as u64;
        let words = [offset as u64, start, 0, length, length, 1];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        offset += bytes.len();
    };
    segment(4, 0, 0, &notes);
    segments.iter().for_each(|(start, flags, bytes)| segment(1, *flags, *start, bytes));
    file.extend(notes);
    segments.iter().for_each(|(_, _, bytes)| file.extend(bytes));
    fs::write(path, file).unwrap();
}
