//! Writes a core file of a process that goes on, as `gcore` does.

use std::fs;
use std::path::Path;

use typed_heap::{Memory as _, ProcessMemory};

const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// The machine, the kind and the length of the note that says where a thread has its thread-locals, and the place in it.
const OF_THREADS: (u16, u32, usize, usize) =
    if cfg!(target_arch = "aarch64") { (183, 0x401, 8, 0) } else { (62, 1, 336, 280) };

fn note(kind: u32, contents: &[u8]) -> Vec<u8> {
    let header = [5, contents.len() as u32, kind];
    let mut note: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    note.extend(*b"CORE\0\0\0\0");
    note.extend(contents);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// Writes a core file: the memory of all mappings, a note of their files, and one for each of the threads.
pub(crate) fn write(pid: u32, path: &Path, threads: &[u64]) {
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
    let mut of_files: Vec<u8> =
        [files.len() as u64, 4096].iter().flat_map(|word| word.to_le_bytes()).collect();
    for file in &files {
        of_files
            .extend([file.start, file.end, file.offset / 4096].iter().flat_map(|word| word.to_le_bytes()));
    }
    for file in &files {
        of_files.extend(file.path.bytes().chain([0]));
    }
    let (machine, kind, length, place) = OF_THREADS;
    let mut notes = Vec::new();
    for thread in threads {
        let mut registers = vec![0; length];
        registers[place..place + 8].copy_from_slice(&thread.to_le_bytes());
        notes.extend(note(kind, &registers));
    }
    notes.extend(note(0x4649_4c45, &of_files));

    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(ELF_HEADER, 0);
    file[16] = 4;
    file[18..20].copy_from_slice(&machine.to_le_bytes());
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
