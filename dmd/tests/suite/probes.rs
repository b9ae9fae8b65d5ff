//! The notes of the static probes: readers find the probes by them. `tests/probes/check` reads the probes by the kernel.

use std::fs;
use std::path::Path;

use crate::support::{libdmd, victim};

/// A note of `.note.stapsdt`.
#[derive(Debug)]
struct ProbeNote {
    probe: String,
    arguments: String,
    address: u64,
    base: u64,
    listeners: u64,
}

/// Name, address, offset and size.
type ElfSection = (String, u64, usize, usize);

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// The sections of an ELF file of 64 bits.
fn sections(file: &[u8]) -> Vec<ElfSection> {
    let short = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let (table, size, count, names) = (word(file, 0x28) as usize, short(0x3a), short(0x3c), short(0x3e));
    let names = word(file, table + names * size + 0x18) as usize;
    let text = |at: usize| {
        let end = file[at..].iter().position(|byte| *byte == 0).unwrap();
        String::from_utf8_lossy(&file[at..at + end]).into_owned()
    };
    (0..count)
        .map(|index| table + index * size)
        .map(|at| {
            let name = text(names + half(file, at));
            (name, word(file, at + 0x10), word(file, at + 0x18) as usize, word(file, at + 0x20) as usize)
        })
        .collect()
}

fn notes(file: &Path) -> (Vec<ProbeNote>, Vec<ElfSection>) {
    let bytes = fs::read(file).unwrap();
    let sections = sections(&bytes);
    let (_, _, offset, size) =
        sections.iter().find(|(name, ..)| name == ".note.stapsdt").expect("the file has notes").clone();
    let (mut rest, mut notes) = (&bytes[offset..offset + size], Vec::new());
    while !rest.is_empty() {
        let (name, length, kind) = (half(rest, 0), half(rest, 4), half(rest, 8));
        assert_eq!((name, kind, &rest[12..20]), (8, 3, &b"stapsdt\0"[..]));
        let note = &rest[20..20 + length];
        let mut texts =
            note[24..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let (provider, probe) = (texts.next().unwrap(), texts.next().unwrap());
        notes.push(ProbeNote {
            probe: format!("{provider}:{probe}"),
            arguments: texts.next().unwrap(),
            address: word(note, 0),
            base: word(note, 8),
            listeners: word(note, 16),
        });
        rest = &rest[20 + length.next_multiple_of(4)..];
    }
    (notes, sections)
}

#[test]
fn each_file_has_each_note_once() {
    for file in [victim("boxed"), libdmd().to_owned()] {
        let (notes, sections) = notes(&file);
        let mut names: Vec<_> = notes.iter().map(|note| note.probe.as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["ddheap:alloc", "ddheap:free", "otel_memory:alloc", "otel_memory:free"],
            "{file:?}"
        );
        let section = |name: &str| sections.iter().find(|(found, ..)| found == name).unwrap();
        let (code, counters) = (section(".text"), section(".probes"));
        // A linker may drop the section of the base, since no code refers to it. Then readers use the addresses as they
        // are.
        let base =
            sections.iter().find(|(found, ..)| found == ".stapsdt.base").map_or(0, |(_, start, ..)| *start);
        for note in &notes {
            let within =
                |(_, start, _, size): &ElfSection, address| (*start..start + *size as u64).contains(&address);
            assert!(within(code, note.address) && within(counters, note.listeners), "{note:?}");
            assert_eq!(note.base, base, "{note:?}");
            let arguments = note.arguments.split(' ').count();
            assert_eq!(arguments, if note.probe.ends_with("alloc") { 3 } else { 1 }, "{note:?}");
        }
        let counter = |end: &str| notes.iter().find(|note| note.probe.ends_with(end)).unwrap().listeners;
        assert_ne!(counter(":alloc"), counter(":free"));
    }
}
