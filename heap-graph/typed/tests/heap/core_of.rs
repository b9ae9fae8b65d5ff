//! Writes a core file of a running process, like `gcore`.

use std::fs;
use std::path::Path;

use typed_heap::{MemorySource as _, ProcessMemory};

const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// The ELF number of the processor.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// The length of the note of a thread's registers, the position of the stack pointer, and the position of the thread
/// pointer; `None` if the note does not contain the thread pointer.
const REGISTERS: (usize, usize, Option<usize>) =
    if cfg!(target_arch = "aarch64") { (392, 360, None) } else { (336, 264, Some(280)) };

/// The kind of the separate note with a thread pointer.
const THREAD_POINTER: u32 = 0x401;

fn note(kind: u32, contents: &[u8]) -> Vec<u8> {
    let header = [5, contents.len() as u32, kind];
    let mut note: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    note.extend(*b"CORE\0\0\0\0");
    note.extend(contents);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// Writes a core file: the memory of all mappings, a note of their files, and the thread and stack pointers of
/// threads.
pub(crate) fn write(pid: u32, path: &Path, threads: &[(u64, u64)]) {
    let memory = ProcessMemory::open(pid).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut segments = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap());
        let permissions = words.next().unwrap();
        let flags = if permissions.contains('w') { 6_u32 } else { 4 };
        if end >> 63 == 0 && permissions.starts_with('r') {
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
    let (length, of_stack, of_thread) = REGISTERS;
    let mut notes = Vec::new();
    for (number, (thread, stack)) in threads.iter().enumerate() {
        let mut registers = vec![0; length];
        registers[32] = 1 + number as u8;
        registers[of_stack..of_stack + 8].copy_from_slice(&stack.to_le_bytes());
        if let Some(place) = of_thread {
            registers[place..place + 8].copy_from_slice(&thread.to_le_bytes());
        }
        notes.extend(note(1, &registers));
        if of_thread.is_none() {
            notes.extend(note(THREAD_POINTER, &thread.to_le_bytes()));
        }
    }
    notes.extend(note(0x4649_4c45, &of_files));

    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(ELF_HEADER, 0);
    file[16] = 4;
    file[18..20].copy_from_slice(&MACHINE.to_le_bytes());
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
