//! Malicious debug information, dumps and memory that aim at endless work.

use core::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use typed_heap::{DebugInfo, ScanMemory, TypedHeap};

use super::next;
use super::written::{OneStack, Types, dump};

/// The time limit of a test: much longer than a test needs, and much shorter than the work without the bound.
pub(super) const LONG: Duration = Duration::from_secs(20);

fn nothing() -> DebugInfo {
    Types::new().read()
}

/// Each of 30 nested types has 16 members of the next type at the same offset, so 16^30 paths lead to the innermost
/// type.
#[test]
fn ways_to_a_tail_are_bounded() {
    let start = Instant::now();
    let mut types = Types::new();
    let word = types.scalar("u64", 8);
    let node = types.structure("a::Node", 8, [("value", word, 0)]);
    let pointer = types.pointer("*const a::Node", node);
    let mut last = types.structure("a::Last", 8, [("value", word, 0), ("more", pointer, 0)]);
    for level in 0..30 {
        let members = [last; 16].map(|of| ("tail", of, 0));
        last = types.structure(&format!("a::Level{level}"), 8, members);
    }
    let info = types.read();
    let dump = dump(&[(0x10000, "a::Level29", vec![0x20000]), (0x20000, "a::Node", vec![7])]).unwrap();
    let memory = ScanMemory::new(&dump).unwrap();
    let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
    assert_eq!((heap.census().typed_blocks, heap.census().misfits), (2, 0));
    // The walk finds the pointers that it reaches within the allowed steps for a block of this size.
    assert!(heap.edges(0).count() > 0);
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

/// The search for the tail of a type ends after 64 nested values. Tails at a smaller depth are followed.
#[test]
fn nested_tails_are_followed_up_to_a_depth() {
    for (depth, expected) in [(5, 3), (40, 3), (100, 0)] {
        let mut types = Types::new();
        let word = types.scalar("u64", 8);
        let node = types.structure("a::Node", 8, [("value", word, 0)]);
        let pointer = types.pointer("*const a::Node", node);
        let none = types.array(pointer, 0);
        let mut last = types.structure("a::Level0", 8, [("count", word, 0), ("items", none, 8)]);
        for level in 1..depth {
            last = types.structure(&format!("a::Level{level}"), 8, [("inside", last, 0)]);
        }
        let to = types.pointer("*const a::Level", last);
        types.structure("a::Owner", 8, [("list", to, 0)]);
        let info = types.read();
        let nodes = [0x20000, 0x20100, 0x20200];
        let list = [&[3][..], &nodes].concat();
        let mut blocks = vec![(0x10000, "a::Owner", vec![0x11000]), (0x11000, "", list)];
        blocks.extend(nodes.map(|address| (address, "a::Node", vec![1])));
        let dump = dump(&blocks).unwrap();
        let memory = ScanMemory::new(&dump).unwrap();
        let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
        let paths: Vec<_> = heap.edges(1).filter_map(|(_, path)| path).collect();
        assert_eq!(paths.len(), expected, "{depth}: {paths:?}");
        assert!(paths.iter().all(|path| path.ends_with(".items[]")), "{paths:?}");
        assert_eq!(heap.census().misfits, 0);
    }
}

/// A type of 60,000 members. Each member contains a pointer that needs the member's name.
#[test]
fn many_members_have_their_names_soon() {
    const MEMBERS: u64 = 60_000;
    let start = Instant::now();
    let mut types = Types::new();
    let word = types.scalar("u64", 8);
    let node = types.structure("a::Node", 8, [("value", word, 0)]);
    let pointer = types.pointer("*const a::Node", node);
    let names = ["", "", "", "", "", "fifth"];
    let members =
        (0..MEMBERS).map(|number| (*names.get(number as usize).unwrap_or(&"later"), pointer, 8 * number));
    types.structure("std::Wide", 8 * MEMBERS, members);
    let info = types.read();
    let dump = dump(&[(0x1000, "a::Node", vec![7]), (0x100000, "std::Wide", vec![0x1000; MEMBERS as usize])]);
    let dump = dump.unwrap();
    let memory = ScanMemory::new(&dump).unwrap();
    let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
    let paths: Vec<_> = heap.edges(1).map(|(_, path)| path.unwrap()).collect();
    assert_eq!((paths.len() as u64, &*paths[5], &*paths[50_000]), (MEMBERS, ".fifth", ".later"));
    assert_eq!(&*paths[4], "");
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

/// The peak memory of this process, in kilobytes.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Each unit is a header of 11 bytes and a null entry. A parsed header takes several times as much memory.
#[test]
fn units_without_entries_take_no_memory() {
    const UNITS: usize = 400_000;
    let mut types = Types::new();
    types.scalar("u64", 8);
    let program = types.program(UNITS);
    let before = most_memory();
    for threads in [1, 2] {
        assert_eq!(DebugInfo::read_on(&program, threads).unwrap().types().count(), 1);
    }
    let more = most_memory() - before;
    assert!(more < 16 << 10, "{more} KB for {UNITS} units");
}

/// A thousand threads that claim the same terabyte of stack.
#[test]
fn bytes_of_all_stacks_are_bounded() {
    let info = nothing();
    let dump = dump(&[(0x1000, "a::Node", vec![7])]).unwrap();
    let memory = OneStack { start: 0x10_0000, threads: 1000, read: Cell::new(0) };
    let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
    assert_eq!(heap.blocks().len(), 1);
    let read = memory.read.get();
    assert!((64 << 20..=260 << 20).contains(&read), "{read}");
}

#[test]
fn the_smaller_of_two_blocks_that_overlap_stays() {
    let info = nothing();
    let kept = |blocks: &[(u64, &str, Vec<u64>)]| {
        let dump = dump(blocks).unwrap();
        let memory = ScanMemory::new(&dump).unwrap();
        let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
        let kept: Vec<u64> = heap.blocks().iter().map(|block| block.address).collect();
        assert_eq!(heap.overlapping(), blocks.len() - kept.len());
        kept
    };
    for second in [0x1000, 0x1008, 0x100f] {
        assert_eq!(kept(&[(second, "", vec![1]), (0x1000, "", vec![1, 2])]), [second]);
        assert_eq!(kept(&[(0x1000, "", vec![1]), (second.min(0x1007), "", vec![1, 2])]), [0x1000]);
    }
    assert_eq!(kept(&[(0x1010, "", vec![1]), (0x1000, "", vec![1, 2])]), [0x1000, 0x1010]);
    // Three smaller blocks have replaced a block.
    let replaced =
        [(0x1000, "", vec![0; 8]), (0x1000, "", vec![1]), (0x1010, "", vec![1]), (0x1030, "", vec![1])];
    assert_eq!(kept(&replaced), [0x1000, 0x1010, 0x1030]);
    // The last block ends after the highest address.
    assert_eq!(kept(&[(u64::MAX - 7, "", vec![1, 2]), (0x1000, "", vec![1])]), [0x1000]);
}

/// The elements of an array are themselves arrays without elements, or end in such an array.
#[test]
fn arrays_without_elements_have_no_pointers() {
    let mut types = Types::new();
    let word = types.scalar("u64", 8);
    let node = types.structure("a::Node", 8, [("value", word, 0)]);
    let pointer = types.pointer("*const a::Node", node);
    let none = types.array(pointer, 0);
    types.structure("a::Empty", 0, [("none", none, 0)]);
    let ends = types.structure("a::Ends", 8, [("first", pointer, 0), ("none", none, 8)]);
    types.array(ends, 3);
    let empty = types.array(none, 3);
    types.structure("a::Several", 8, [("word", word, 0), ("empty", empty, 8)]);
    let info = types.read();
    let nodes = [0x20000, 0x20100, 0x20200];
    let mut blocks = vec![(0x10000, "[a::Ends; 3]", nodes.to_vec()), (0x11000, "a::Several", vec![0x20000])];
    blocks.extend(nodes.map(|address| (address, "a::Node", vec![1])));
    blocks.push((0x30000, "a::Empty", vec![]));
    let dump = dump(&blocks).unwrap();
    let memory = ScanMemory::new(&dump).unwrap();
    let heap = TypedHeap::new(&dump, &info, 0, &memory).unwrap();
    assert_eq!(heap.type_name(0), "[a::Ends; 3]");
    let edges: Vec<_> = heap.edges(0).collect();
    let expected = [2, 3, 4].map(|node| (node, Some("[].first".to_owned())));
    assert_eq!(edges, expected);
    assert_eq!((heap.edges(1).count(), heap.census().misfits), (0, 0));
}

/// A dump with a damaged byte results in an error with its position, or in a heap.
#[test]
fn damaged_dumps_give_errors_or_types() {
    let mut types = Types::new();
    let word = types.scalar("u64", 8);
    let node = types.structure("a::Node", 8, [("value", word, 0)]);
    let next_node = types.pointer("*const a::Node", node);
    types.structure("a::List", 16, [("value", word, 0), ("next", next_node, 8)]);
    let info = types.read();
    let (mut errors, mut heaps, mut state) = (0, 0, 1);
    let text = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "scan"}, "blockList": [
        {"req": 16, "addr": "1000", "alloc": "A", "contents": ["5", "2000"]},
        {"req": 8, "slop": 8, "addr": "2000", "alloc": "C", "contents": ["7"]}],
        "traceTable": {"A": ["B"], "C": ["D"]}, "frameTable": {
        "B": "#00: <alloc::boxed::Box<a::List>>::new (a.rs:1)", "D": "#00: <alloc::boxed::Box<a::Node>>::new (a.rs:2)"}}"##;
    for _ in 0..3000 {
        let mut damaged = text.as_bytes().to_vec();
        for _ in 0..1 + next(&mut state) % 3 {
            let at = next(&mut state) as usize % damaged.len();
            damaged[at] = b"0123456789abcdefABCD\"{}[],:- "[next(&mut state) as usize % 29];
        }
        let options = dmd_analyze::DumpReadOptions::new().contents(true);
        let one_line = |error: String| assert!(!error.contains('\n'), "{error}");
        match dmd_analyze::read_from(&*damaged, &options) {
            Err(error) => one_line(error.to_string()),
            Ok(dump) => {
                let heap = ScanMemory::new(&dump).and_then(|memory| {
                    let heap = TypedHeap::new(&dump, &info, 0, &memory)?;
                    heap.graph(&dump)?;
                    assert!(heap.waste(&memory).unused_bytes <= heap.census().bytes);
                    heaps += 1;
                    Ok(heap.census())
                });
                match heap {
                    Ok(census) => assert!(census.typed_blocks <= census.blocks),
                    Err(error) => one_line(error.to_string()),
                }
                continue;
            }
        }
        errors += 1;
    }
    assert!(errors > 100 && heaps > 100, "{errors} {heaps}");
}
