//! The results from debug information are the same for any number of threads.

use object::{Object as _, ObjectSection as _};
use typed_heap::{DebugInfo, MemorySource, ScanMemory, TypedHeap};

use super::{Victim, program};

/// A program with some megabytes of debug information: the file, and the position and length of the section.
fn file() -> (Vec<u8>, usize, usize) {
    let whole = std::fs::read(program("typed_heap_victim")).unwrap();
    let section = object::File::parse(&*whole).unwrap();
    let (start, length) = section.section_by_name(".debug_info").unwrap().file_range().unwrap();
    assert!(length > 4 << 20, "{length}");
    (whole, start as usize, length as usize)
}

/// All types, in their order.
fn types(info: &DebugInfo) -> Vec<(&str, u64, bool)> {
    let found = |name| info.with_short_name(name).first().is_some_and(|id| info.name(*id) == name);
    info.types().map(|id| (info.name(id), info.size(id), found(info.name(id)))).collect()
}

/// All results of a heap, as text.
fn heap(info: &DebugInfo, victim: &Victim, memory: &dyn MemorySource) -> String {
    let bias = victim.dump.modules()[0].bias.unwrap_or(0);
    let heap = TypedHeap::new(&victim.dump, info, bias, memory).unwrap();
    let blocks = 0..heap.blocks().len();
    let edges: Vec<_> =
        blocks.map(|block| (heap.type_name(block), heap.edges(block).collect::<Vec<_>>())).collect();
    format!("{:#?}\n{edges:#?}\n{:#?}", heap.census(), heap.waste(memory))
}

#[test]
fn several_threads_give_what_one_gives() {
    let (whole, ..) = file();
    let victim = Victim::start();
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let alone = DebugInfo::read_on(&whole, 1).unwrap();
    let by_one = heap(&alone, &victim, &memory);
    assert!(by_one.contains("[].session") && alone.vtable_count() > 0, "{by_one}");
    for threads in [0, 2, 4, 1000] {
        let together = DebugInfo::read_on(&whole, threads).unwrap();
        assert_eq!(together.vtable_count(), alone.vtable_count());
        assert!(types(&together) == types(&alone), "{threads}");
        assert!(heap(&together, &victim, &memory) == by_one, "{threads}");
    }
}

/// The starts of the units in a section at `start` with `length` bytes.
fn units(whole: &[u8], start: usize, length: usize) -> Vec<usize> {
    let next = |at: &usize| {
        let length = u32::from_le_bytes(whole[*at..at + 4].try_into().unwrap());
        Some(at + 4 + length as usize)
    };
    std::iter::successors(Some(start), next).take_while(|at| *at < start + length).collect()
}

#[test]
fn several_threads_find_the_same_fault() {
    let (whole, start, length) = file();
    let check = |damaged: &[u8], what: &str| {
        let read = |threads| DebugInfo::read_on(damaged, threads);
        match (read(1), read(4)) {
            (Ok(alone), Ok(together)) => assert!(types(&together) == types(&alone), "{what}"),
            (alone, together) => {
                assert_eq!(together.unwrap_err().to_string(), alone.unwrap_err().to_string(), "{what}");
            }
        }
    };
    // Invalid versions, in one part and in several parts.
    let units = units(&whole, start, length);
    for parts in [&[3][..], &[1, 2, 4]] {
        let mut damaged = whole.clone();
        for part in parts {
            let unit = units[units.len() * part / 5];
            damaged[unit + 4..unit + 6].fill(0xff);
        }
        assert!(DebugInfo::read_on(&damaged, 4).is_err(), "{parts:?}");
        check(&damaged, &format!("{parts:?}"));
    }
    // Damages the insides of units. Reading may then fail. The last rounds damage each of four parts.
    for round in 1..6 {
        let mut damaged = whole.clone();
        for part in (1..5).filter(|part| round > 3 || part % round == 0) {
            let at = start + length / 5 * part + 7 * round;
            damaged[at..at + 3 * round].fill(if round % 2 == 0 { 0xff } else { 0x81 });
        }
        check(&damaged, &format!("{round}"));
    }
}
