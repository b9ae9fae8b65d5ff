//! Reads the tables of a running engine from outside of the process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Stdio};

use dmd::analyze::image::{FileMapping, read_image};
use dmd::analyze::{AnalyzeError, Dump, DumpReadOptions, read_with};

use crate::support::{c_program, preloaded};

fn mappings(child: &Child) -> Vec<FileMapping> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (range, permissions, offset) = (words.next()?, words.next()?, words.next()?);
        let (start, end) = range.split_once('-')?;
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        Some(FileMapping {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            is_writable: permissions.contains('w'),
            path: words.nth(2).filter(|path| path.starts_with('/'))?.to_owned(),
        })
    };
    maps.lines().filter_map(mapping).collect()
}

fn image(child: &Child) -> Result<Dump, AnalyzeError> {
    let memory = memory(child);
    let read = |address, into: &mut [u8]| memory.read_at(into, address).unwrap_or(0);
    read_image(&read, &mappings(child), 1_000_000)
}

fn memory(child: &Child) -> File {
    File::open(format!("/proc/{}/mem", child.id())).unwrap()
}

/// Starts a program that waits. Returns the process, and the addresses and sizes of the blocks that it has printed.
fn start(options: &str) -> (Child, BTreeMap<u64, u64>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "outside");
    let mut child = preloaded(&program, options)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let blocks = lines.take_while(|line| line != "ready").map(|line| {
        let (address, size) = line.split_once(' ').unwrap();
        (u64::from_str_radix(&address[2..], 16).unwrap(), size.parse().unwrap())
    });
    let blocks = blocks.collect();
    (child, blocks, folder)
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// For each address, the requested bytes, the usable bytes, and the frames of the stack.
fn blocks_of(dump: &Dump) -> BTreeMap<u64, (u64, u64, Vec<String>)> {
    let stacks: Vec<Vec<String>> =
        dump.stacks().map(|stack| stack.map(|frame| frame.name().to_owned()).collect()).collect();
    let frames = |stack: Option<usize>| stack.map(|stack| stacks[stack].clone()).unwrap_or_default();
    let block = |block: dmd::analyze::ScannedBlock<'_>| {
        (block.address(), (block.requested(), block.usable(), frames(block.stack())))
    };
    dump.scanned_blocks().unwrap().map(block).collect()
}

#[test]
fn every_block_is_read_from_outside_with_its_stack() {
    let (child, printed, folder) =
        start("--mode=scan --stacks=full --quiet --dump-at-exit --output=scan.json");
    let outside = image(&child).unwrap();
    end(child);
    assert!(printed.len() > 2000, "{}", printed.len());
    let read = blocks_of(&outside);
    for (address, size) in &printed {
        assert_eq!(read.get(address).map(|block| block.0), Some(*size), "0x{address:x}");
    }
    // The C library has some blocks for the program's output.
    assert!(read.len() <= printed.len() + 3, "{} and {}", read.len(), printed.len());
    assert!(read.values().all(|(_, _, frames)| frames.len() >= 2), "{read:?}");
    let dump = read_with(folder.path().join("scan.json"), &DumpReadOptions::new()).unwrap();
    assert_eq!(blocks_of(&dump), read, "the engine's own dump must contain the same blocks");
    let modules = |dump: &Dump| {
        let all = dump.modules().iter().filter(|module| module.path.starts_with('/'));
        // The loader's paths may be symbolic links.
        let path = |path: &str| fs::canonicalize(path).unwrap();
        all.map(|module| (path(&module.path), module.build_id.clone(), module.bias)).collect::<Vec<_>>()
    };
    assert_eq!(modules(&outside), modules(&dump));
}

#[test]
fn what_records_no_or_not_all_blocks_is_refused() {
    for (options, reason) in [
        ("--quiet --sample-below=4093", "only a sample of the small blocks"),
        ("--quiet --sample-bytes=4096", "does not record every block"),
        ("--quiet --wait-for-track", "does not record every block"),
    ] {
        let (child, ..) = start(options);
        let error = image(&child).unwrap_err().to_string();
        end(child);
        assert!(error.contains(reason), "{options}: {error}");
    }
    let mut child = std::process::Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let error = image(&child).unwrap_err().to_string();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(error.contains("no engine of DMD"), "{error}");
}

/// Each run changes one word in one of the reads: an address, a count, a word of a block, or a header.
#[test]
fn damaged_tables_are_refused_or_read() {
    let (child, ..) = start("--quiet --mode=live --stacks=full");
    let (memory, mappings) = (memory(&child), mappings(&child));
    let reads = Cell::new(0_usize);
    let counted = |address, into: &mut [u8]| {
        reads.set(reads.get() + 1);
        memory.read_at(into, address).unwrap_or(0)
    };
    let whole = blocks_of(&read_image(&counted, &mappings, 1_000_000).unwrap()).len();
    let (all, mut refused) = (reads.get(), 0);
    let mut state = 1_u64;
    let mut random = |most: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % most
    };
    for _ in 0..100 {
        let (damaged, place, value) = (random(all), random(1 << 20), random(1 << 31) as u64 * 0x0001_0003);
        let read = Cell::new(0_usize);
        let damaging = |address, into: &mut [u8]| {
            let filled = memory.read_at(into, address).unwrap_or(0);
            if read.replace(read.get() + 1) == damaged && filled >= 8 {
                let place = place % (filled / 8) * 8;
                into[place..place + 8].copy_from_slice(&value.to_le_bytes());
            }
            filled
        };
        match read_image(&damaging, &mappings, 1_000_000) {
            Ok(dump) => assert!(blocks_of(&dump).len().abs_diff(whole) < 2_000),
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    end(child);
    assert!((1..100).contains(&refused), "{refused}");
    let looping = |_: u64, into: &mut [u8]| {
        into.fill(0x41);
        into.len()
    };
    assert!(read_image(&looping, &mappings, 1_000_000).is_err());
}
