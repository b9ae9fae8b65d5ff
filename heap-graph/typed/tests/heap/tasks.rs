//! The tasks of a program. The source of the program contains the expected positions.

use heap_graph::DominatorTree;
use object::{Object as _, ObjectSection as _};
use typed_heap::{AwaitedFuture, DebugInfo, HeapTasks, MemorySource, ScanMemory, TypedHeap};

use crate::{Victim, program};

const SOURCE: &str = include_str!("../victims/tasks.rs");

/// The number of the victim's line that ends with a comment of this word.
fn line(word: &str) -> u32 {
    let ending = format!("// {word}");
    1 + SOURCE.lines().position(|line| line.ends_with(&ending)).unwrap() as u32
}

/// A future: its function, its state, and its line.
fn short(one: &AwaitedFuture) -> (&str, &str, u32) {
    let (file, line) = one.place.as_ref().unwrap();
    assert!(file.ends_with("/tests/victims/tasks.rs"), "{file}");
    (one.future.strip_prefix("typed_heap_tasks::").unwrap(), &one.state, *line)
}

/// The tasks, the usable bytes of a letter, and the usable bytes that the shared letter retains.
fn tasks(victim: &Victim) -> (HeapTasks, u64, u64) {
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let graph = heap.graph(&victim.dump).unwrap();
    let letter = heap.blocks().iter().find(|block| block.requested == 64 * 8).unwrap();
    let numbers = heap.blocks().iter().find(|block| block.requested == 1_000 * 8).unwrap();
    let counted = (0..heap.blocks().len()).find(|block| heap.type_name(*block).contains("ArcInner"));
    let shared = numbers.usable + heap.blocks()[counted.unwrap()].usable;
    (heap.tasks(&memory, &DominatorTree::new(&graph)), letter.usable, shared)
}

#[test]
fn each_task_is_at_its_await() {
    let victim = Victim::of("typed_heap_tasks");
    let (tasks, letter, shared) = tasks(&victim);
    let [first, second, third, fourth, fifth] = ["FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH"].map(line);
    let row = |chain: &[(&str, &str, u32)]| {
        let row = tasks.rows.iter().find(|row| row.awaits.iter().map(short).eq(chain.iter().copied()));
        row.unwrap_or_else(|| panic!("{chain:?}: {:#?}", tasks.rows))
    };
    let receiving = row(&[("serve", "Suspend0", second), ("{impl#0}::receive", "Suspend0", first)]);
    let waiting = row(&[("serve", "Suspend1", third)]);
    let behind = row(&[("outer", "Suspend0", fourth), ("serve", "Suspend1", third)]);
    let sharing = row(&[("share", "Suspend0", fifth)]);
    for (row, expected) in [(receiving, 10), (waiting, 20), (behind, 5), (sharing, 3)] {
        assert_eq!(row.tasks, expected, "{row:#?}");
        assert_eq!(row.waits_for.as_deref(), Some("Pending<()>"));
    }
    // Each task holds its own letter. An outer task holds an inner task, which holds the letter.
    let own = waiting.bytes / 20;
    assert_eq!((receiving.bytes, waiting.bytes), (10 * own, 20 * own));
    assert_eq!(receiving.retained_bytes, 10 * (own + letter));
    assert_eq!(waiting.retained_bytes, 20 * (own + letter));
    assert_eq!(behind.retained_bytes, behind.bytes + 5 * (own + letter));
    assert_eq!(sharing.retained_bytes, sharing.bytes + shared);

    let not_polled: Vec<_> = tasks.rows.iter().filter(|row| row.awaits[0].state == "Unresumed").collect();
    assert_eq!((not_polled.len(), not_polled[0].tasks), (1, 4));
    assert_eq!(not_polled[0].retained_bytes, 4 * own);
    let done: Vec<_> = tasks.rows.iter().filter(|row| row.awaits[0].state == "Returned").collect();
    assert_eq!((done.len(), done[0].tasks), (1, 1));
    assert!(done[0].awaits[0].future.starts_with("typed_heap_tasks::main::{async_block#"));

    assert_eq!((tasks.rows.len(), tasks.tasks), (6, 10 + 20 + 5 + 3 + 4 + 1));
    assert_eq!(tasks.bytes, tasks.rows.iter().map(|row| row.bytes).sum::<u64>());
    assert_eq!(tasks.retained_bytes, tasks.rows.iter().map(|row| row.retained_bytes).sum::<u64>());
    let sizes: Vec<_> = tasks.rows.iter().map(|row| row.retained_bytes).collect();
    assert!(sizes.is_sorted_by(|one, other| one >= other), "{sizes:?}");
}

/// Symbols and debug information name `async` functions and the types of their methods in different forms.
#[test]
fn futures_have_the_names_of_symbols() {
    let whole = std::fs::read(program("typed_heap_tasks")).unwrap();
    let info = DebugInfo::read(&whole).unwrap();
    for (symbol, name) in [
        ("typed_heap_tasks::serve::{closure#0}", "typed_heap_tasks::serve::{async_fn_env#0}"),
        (
            "<typed_heap_tasks::Letter>::receive::{closure#0}",
            "typed_heap_tasks::{impl#0}::receive::{async_fn_env#0}",
        ),
        ("Option<&app::f::<u8, fn() -> u16>::outer::{closure#0}>", ""),
    ] {
        let names: Vec<_> = info.with_short_name(symbol).iter().map(|id| info.name(*id)).collect();
        assert_eq!(names.first().copied().unwrap_or_default(), name, "{names:?}");
    }
}

#[test]
fn a_program_without_tasks_has_none() {
    let victim = Victim::start();
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let graph = heap.graph(&victim.dump).unwrap();
    assert_eq!(heap.tasks(&memory, &DominatorTree::new(&graph)), HeapTasks::default());
}

/// A pseudo-random sequence of numbers (the generator of Knuth's MMIX).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// Memory in which about every sixteenth byte is replaced by a pseudo-random byte.
#[derive(Debug)]
struct Damaged<'m>(&'m dyn MemorySource, u64);

impl MemorySource for Damaged<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let filled = self.0.read(address, into);
        for (at, byte) in (address..).zip(&mut into[..filled]) {
            let mut state = at ^ self.1;
            if next(&mut state).is_multiple_of(16) {
                *byte = next(&mut state) as u8;
            }
        }
        filled
    }
}

#[test]
fn damaged_memory_and_debug_information_end() {
    let victim = Victim::of("typed_heap_tasks");
    let scan = ScanMemory::new(&victim.dump).unwrap();
    let ask = |info: &DebugInfo, memory: &dyn MemorySource| {
        let bias = victim.dump.modules()[0].bias.unwrap_or(0);
        let heap = TypedHeap::new(&victim.dump, info, bias, memory).unwrap();
        let graph = heap.graph(&victim.dump).unwrap();
        let (tasks, waste) = (heap.tasks(memory, &DominatorTree::new(&graph)), heap.waste(memory));
        assert!(tasks.rows.len() <= heap.blocks().len() && waste.unused_bytes < 1 << 32, "{waste:?}");
    };
    (0..8).for_each(|seed| ask(&victim.info, &Damaged(&scan, seed)));

    let whole = std::fs::read(program("typed_heap_tasks")).unwrap();
    let (start, length) = {
        let file = object::File::parse(&*whole).unwrap();
        file.section_by_name(".debug_info").unwrap().file_range().unwrap()
    };
    let mut state = 1;
    for _ in 0..8 {
        let mut file = whole.clone();
        for _ in 0..length / 5000 {
            file[(start + next(&mut state) % length) as usize] ^= 1 << (next(&mut state) % 8);
        }
        if let Ok(info) = DebugInfo::read(&file) {
            ask(&info, &scan);
        }
    }
}
