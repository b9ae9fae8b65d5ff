//! Arenas with many chunks, with values that look like outgrown buffers, and with a header of a wrong size.

use core::cell::Cell;
use std::time::Instant;

use typed_heap::{DebugInfo, MemorySource, ScanMemory, TypeCensus, TypedHeap};

use super::bounds::LONG;
use super::written::{Types, dump};

const NODES: [u64; 2] = [0x20000, 0x20100];
const FIRST: u64 = 0x100000;
const HEADER: u64 = 16;

/// An owner with a raw pointer to a chunk, a reference to a mark in the chunk, and a slice of references. `header` is the
/// size of a chunk's header.
fn types(header: u64) -> DebugInfo {
    let mut types = Types::new();
    let (byte, word) = (types.scalar("u8", 1), types.scalar("u64", 8));
    let free = types.pointer("*mut u8", byte);
    let chunk = types.pointer_to_next("*mut a::ChunkHeader");
    types.structure("a::ChunkHeader", header, [("before", chunk, 0), ("free", free, 8)]);
    let node = types.structure("a::Node", 8, [("value", word, 0)]);
    let node = types.pointer("&a::Node", node);
    let mark = types.structure("a::Mark", 8, [("value", word, 0)]);
    let mark = types.pointer("&a::Mark", mark);
    let first = types.pointer("*const &a::Node", node);
    let list = types.structure("&[&a::Node]", 16, [("data_ptr", first, 0), ("length", word, 8)]);
    types.structure("a::Owner", 32, [("last", chunk, 0), ("mark", mark, 8), ("list", list, 16)]);
    types.read()
}

/// The bytes of the outgrown buffers in a chunk with a mark, with these references, and with a slice of references.
fn outgrown(references: &[u64], slice: &[u64]) -> (TypeCensus, u64) {
    let list = FIRST + HEADER + 8 + 8 * references.len() as u64;
    let free = list + 8 * slice.len() as u64;
    let chunk = [&[0, free, 7], references, slice, &[0]].concat();
    let owner = vec![FIRST, FIRST + HEADER, list, slice.len() as u64];
    let mut blocks = vec![(0x1000, "a::Owner", owner), (FIRST, "", chunk)];
    blocks.extend(NODES.map(|address| (address, "a::Node", vec![1])));
    let (dump, info) = (dump(&blocks).unwrap(), types(HEADER));
    let memory = ScanMemory::new(&dump).unwrap();
    let census = TypedHeap::new(&dump, &info, 0, &memory).unwrap().census();
    let rows = census.rows.iter().filter(|row| row.name.starts_with("outgrown"));
    let bytes = rows.map(|row| row.bytes).sum();
    (census, bytes)
}

/// Each reference in the chunk is equal to the first element of a large slice, but not to the second element.
#[test]
fn the_search_for_outgrown_buffers_is_bounded() {
    const COUNT: usize = 1 << 16;
    let start = Instant::now();
    let mut slice = vec![NODES[1]; COUNT];
    slice[0] = NODES[0];
    let (census, bytes) = outgrown(&[NODES[0]; COUNT], &slice);
    assert_eq!((census.typed_blocks, bytes), (4, 0), "{census:#?}");
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

#[test]
fn long_outgrown_buffers_are_found_whole() {
    let slice: Vec<u64> =
        (0..1000).map(|number: usize| NODES[usize::from(number.is_power_of_two())]).collect();
    for count in [1, 2, 3, 100, 511, 999, 1000] {
        let (census, bytes) = outgrown(&slice[..count], &slice);
        assert_eq!(bytes, 8 * count as u64, "{census:#?}");
    }
    // Only the first 300 references are equal to the slice.
    let (census, bytes) = outgrown(&[&slice[..300], &[7; 100]].concat(), &slice);
    assert_eq!(bytes, 8 * 300, "{census:#?}");
}

/// Each header leads only to the chunk before, so the search finds one chunk in each round.
#[test]
fn each_chunk_of_a_long_list_is_found() {
    const CHUNKS: u64 = 6000;
    let chunks: Vec<u64> = (0..CHUNKS).map(|number| FIRST + 0x40 * number).collect();
    let last = FIRST + 0x40 * (CHUNKS - 1);
    let mut blocks = vec![(0x1000, "a::Owner", vec![last, last + HEADER, 0, 0])];
    for at in chunks {
        let before = if at == FIRST { 0 } else { at - 0x40 };
        blocks.push((at, "", vec![before, at + HEADER + 8, 7, 0]));
    }
    let (dump, info) = (dump(&blocks).unwrap(), types(HEADER));
    let memory = ScanMemory::new(&dump).unwrap();
    let census = TypedHeap::new(&dump, &info, 0, &memory).unwrap().census();
    assert_eq!(census.typed_blocks, 1 + CHUNKS, "{} rows", census.rows.len());
}

/// The memory of blocks. All other memory contains zeros. `read` counts the bytes that are read.
#[derive(Debug)]
struct EndlessMemory<'d> {
    blocks: ScanMemory<'d>,
    read: Cell<u64>,
}

impl MemorySource for EndlessMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.read.set(self.read.get() + into.len() as u64);
        let filled = self.blocks.read(address, into);
        into[filled..].fill(0);
        into.len()
    }
}

#[test]
fn a_header_that_is_larger_than_its_block_is_not_read() {
    let info = types(1 << 28);
    let blocks = [
        (0x1000, "a::Owner", vec![FIRST, FIRST + HEADER, 0, 0]),
        (FIRST, "", vec![0, FIRST + HEADER + 8, 7, 0]),
    ];
    let dump = dump(&blocks).unwrap();
    let memory = EndlessMemory { blocks: ScanMemory::new(&dump).unwrap(), read: Cell::new(0) };
    let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
    assert_eq!(heap.census().typed_blocks, 1);
    assert!(memory.read.get() < 1 << 20, "{}", memory.read.get());
}
