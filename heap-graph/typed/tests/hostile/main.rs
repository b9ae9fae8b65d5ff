//! Damaged programs, core files and dumps result in errors, but not in panics or endless work.

#![allow(clippy::unwrap_used, reason = "in a test")]

mod arenas;
mod bounds;
mod written;

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use dmd_analyze::image::{FileMapping, read_image};
use typed_heap::{CoreFile, DebugInfo, MemorySource as _, ProcessMemory};

/// A pseudo-random sequence of numbers (the generator of Knuth's MMIX).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn damaged_programs_give_errors_or_types() {
    let program = fs::read(std::env::current_exe().unwrap()).unwrap();
    DebugInfo::read(&program).unwrap();
    let mut state = 1;
    for round in 0..6 {
        let mut damaged = program.clone();
        for _ in 0..200 {
            let at = next(&mut state) as usize % damaged.len();
            damaged[at] = next(&mut state) as u8;
        }
        if round % 2 == 0 {
            damaged.truncate(next(&mut state) as usize % program.len());
        }
        if let Err(error) = DebugInfo::read(&damaged) {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

/// A core file of x86-64. It has one segment of 8 bytes at 0x1000, which maps a file, and a thread whose `fs` is
/// 0x1234.
fn core() -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(64, 0);
    file[16] = 4;
    file[18] = 62;
    file[32] = 64;
    file[54] = 56;
    file[56] = 2;
    for words in [[1_u64, 176, 0x1000, 0, 8, 8, 0], [4, 184, 0, 0, 356 + 72, 0, 4]] {
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    file.extend(*b"contents");
    file.extend([5_u32, 336, 1].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(*b"CORE\0\0\0\0");
    let mut registers = [0; 336];
    registers[280..288].copy_from_slice(&0x1234_u64.to_le_bytes());
    file.extend(registers);
    file.extend([5_u32, 49, 0x4649_4c45].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(*b"CORE\0\0\0\0");
    file.extend([1_u64, 4096, 0x1000, 0x1008, 2].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(*b"/no/file\0\0\0\0");
    file
}

fn pointers(memory: &CoreFile) -> Vec<Option<u64>> {
    memory.threads().into_iter().map(|thread| thread.thread_pointer).collect()
}

#[test]
fn core_files_give_the_memory_of_their_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    fs::write(&path, core()).unwrap();
    let memory = CoreFile::open(&path).unwrap();
    let mut bytes = [0; 8];
    assert_eq!(memory.missing().unwrap(), 0);
    assert_eq!(memory.read(0x1000, &mut bytes), 8);
    assert_eq!(&bytes, b"contents");
    assert_eq!(memory.read(0x1004, &mut bytes), 4);
    assert_eq!(memory.read(0x1008, &mut bytes), 0);
    assert_eq!(memory.read(0xfff, &mut bytes), 0);
    let mapping = FileMapping {
        start: 0x1000,
        end: 0x1008,
        offset: 2 * 4096,
        is_writable: false,
        path: "/no/file".to_owned(),
    };
    assert_eq!((pointers(&memory), memory.mappings()), (vec![Some(0x1234)], vec![mapping]));
    assert_eq!(memory.end_of(0x1001), Some(0x1008));
    assert_eq!(memory.end_of(0x1008), None);
}

#[test]
fn a_core_file_that_was_cut_off_says_how_much_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    // The segment's bytes start at offset 176.
    for (length, missing) in [(176, 8), (181, 3), (184, 0)] {
        fs::write(&path, &core()[..length]).unwrap();
        assert_eq!(CoreFile::open(&path).unwrap().missing().unwrap(), missing);
    }
}

#[test]
fn damaged_core_files_give_errors_or_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    let whole = core();
    for at in 0..whole.len() {
        for damaged in [whole[..at].to_vec(), {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            other
        }] {
            fs::write(&path, &damaged).unwrap();
            match CoreFile::open(&path) {
                Ok(memory) => {
                    assert!(memory.read(0x1000, &mut [0; 16]) <= 16);
                    assert!(memory.threads().len() <= 1 && memory.mappings().len() <= 1);
                    let read = |address, into: &mut [u8]| memory.read(address, into);
                    let error = read_image(&read, &memory.mappings(), 1000).unwrap_err().to_string();
                    assert!(error.contains("no engine of DMD"), "{error}");
                }
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            }
        }
    }
}

/// The lengths, counts and numbers in the notes are larger than any file.
#[test]
fn damaged_notes_give_no_threads_and_no_mappings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    let whole = core();
    let (registers, files) = (184, 184 + 356);
    let patch =
        |file: &mut Vec<u8>, at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let open = |file: &[u8]| {
        fs::write(&path, file).unwrap();
        CoreFile::open(&path).unwrap()
    };
    // Damages the lengths of a note's name and contents. Everything after a note with a wrong length is unreadable.
    for (at, threads) in [(registers, 0), (registers + 4, 0), (files, 1), (files + 4, 1)] {
        for length in [u32::MAX, u32::MAX - 3, 0x7fff_ffff, 1 << 20] {
            let mut file = whole.clone();
            patch(&mut file, at, &length.to_le_bytes());
            let memory = open(&file);
            assert_eq!((memory.threads().len(), memory.mappings().len()), (threads, 0), "{at} {length:x}");
        }
    }
    // Damages the number of files, and then the size of a page.
    for number in [u64::MAX, 1 << 61, 1 << 40, 2, 0] {
        let mut file = whole.clone();
        patch(&mut file, files + 20, &number.to_le_bytes());
        assert_eq!(open(&file).mappings(), [], "{number:x}");
    }
    let mut file = whole.clone();
    patch(&mut file, files + 28, &u64::MAX.to_le_bytes());
    assert!(open(&file).mappings().len() <= 1);
    // Makes the segment of notes longer than the file.
    let mut file = whole.clone();
    patch(&mut file, 64 + 56 + 32, &u64::MAX.to_le_bytes());
    assert_eq!((open(&file).threads().len(), open(&file).mappings().len()), (1, 1));
    // Adds the registers of more threads than a system can have.
    let mut file = whole[..184].to_vec();
    let note = &whole[184..184 + 356];
    (0..70_000).for_each(|_| file.extend(note));
    patch(&mut file, 64 + 56 + 32, &(70_000 * note.len() as u64).to_le_bytes());
    assert_eq!(open(&file).threads().len(), 1 << 16);
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_has_ended_is_not_there() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The program runs if it answers.
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let memory = ProcessMemory::open(child.id()).unwrap();
    assert!(memory.is_there() && !memory.mappings().unwrap().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!memory.is_there());
    assert_eq!(memory.read(0x1000, &mut [0]), 0);
}

/// A dump may name any file as a module. These files have no end, or a read of them waits.
#[test]
#[cfg(target_os = "linux")]
fn files_that_are_no_programs_are_not_mapped() {
    for path in ["/proc/kmsg", "/proc/self/pagemap", "/dev/zero", "/proc/self"] {
        assert!(dmd_analyze::symbolize::MappedFile::open(path).is_err(), "{path}");
    }
}
