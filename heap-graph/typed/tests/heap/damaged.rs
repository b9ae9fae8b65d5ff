//! Damaged debug information that is still readable may give wrong types, but no panic and no endless work.

use heap_graph::DominatorTree;
use object::{Object as _, ObjectSection as _};
use typed_heap::{DebugInfo, ScanMemory, TypedHeap};

use super::{Victim, program};

/// A pseudo-random sequence of numbers (the generator of Knuth's MMIX).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

#[test]
fn damaged_debug_information_gives_other_types() {
    let victim = Victim::start();
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let bias = victim.dump.modules()[0].bias.unwrap_or(0);
    let whole = std::fs::read(program("typed_heap_victim")).unwrap();
    let section = |name: &str| {
        let file = object::File::parse(&*whole).unwrap();
        let (start, size) = file.section_by_name(name).unwrap().file_range().unwrap();
        (start as usize, size as usize)
    };
    let mut state = 1;
    let mut read = 0;
    // The set of readable damaged files depends on the build.
    for round in 0..80 {
        if read == 4 {
            break;
        }
        let (start, size) = section(if round % 4 == 3 { ".debug_abbrev" } else { ".debug_info" });
        let mut damaged = whole.clone();
        for _ in 0..[2, 8, 32, 1][round % 4] {
            damaged[start + next(&mut state) % size] = next(&mut state) as u8;
        }
        let Ok(info) = DebugInfo::read(&damaged) else { continue };
        read += 1;
        let heap = TypedHeap::new(&victim.dump, &info, bias, &memory).unwrap();
        assert_eq!(heap.census().blocks, heap.blocks().len() as u64);
        let graph = heap.graph(&victim.dump).unwrap();
        let tree = DominatorTree::new(&graph);
        assert!(heap.tasks(&memory, &tree).bytes <= heap.census().bytes);
        assert!(heap.waste(&memory).rows.iter().all(|row| !row.name.is_empty()));
        assert!(heap.holding_chains().holders(0..heap.blocks().len()).iter().all(|row| row.blocks > 0));
    }
    assert!(read > 0, "no damaged program can be read");
}
