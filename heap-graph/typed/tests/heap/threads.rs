//! The blocks that thread-locals and stacks hold. The source of the program contains the expected blocks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use dmd_analyze::image::read_image;
use dmd_analyze::symbolize::SymbolOptions;
use typed_heap::{
    CoreFile, LayeredMemory, MemorySource as _, ProcessMemory, ScanMemory, TypedHeap, WasteKind,
};

use crate::{Victim, core_of, statics_are_readable};

impl Victim {
    /// A core file of the program with these thread pointers and stack pointers.
    fn core(&self, threads: &[(u64, u64)]) -> CoreFile {
        let path = self.folder.path().join("core");
        core_of::write(self.child.id(), &path, threads);
        CoreFile::open(&path).unwrap()
    }
}

#[test]
fn thread_locals_hold_blocks() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_threads");
    let thread = fs::read_to_string(victim.folder.path().join("dump.json.thread")).unwrap();
    let thread = u64::from_str_radix(&thread, 16).unwrap();
    let scan = ScanMemory::new(&victim.dump).unwrap();
    // Without the register of the thread, the position of its thread-locals is unknown.
    let nowhere = vec!["held from outside of the heap".to_owned()];
    let expected = [
        (vec![], [nowhere.clone(), nowhere]),
        (
            vec![(thread, 0), (8, 0)],
            [
                vec!["thread-local typed_heap_threads::linux::EAGER".to_owned()],
                vec!["thread-local typed_heap_threads::linux::LAZY".to_owned()],
            ],
        ),
    ];
    for (threads, chains) in expected {
        let core = victim.core(&threads);
        let heap = victim.heap(&LayeredMemory::new(&scan, &core));
        for (name, chain) in ["Item", "Other"].iter().zip(chains) {
            assert_eq!(chain_of(&heap, &format!("[typed_heap_threads::linux::{name}]")), chain, "{name}");
        }
    }
}

/// Each chunk of an arena has a footer at its end. The footer leads to the previous chunk.
#[test]
fn arenas_hold_their_chunks() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_threads");
    let scan = ScanMemory::new(&victim.dump).unwrap();
    let core = victim.core(&[]);
    let heap = victim.heap(&LayeredMemory::new(&scan, &core));
    let why = heap.holding_chains();
    let chunks: Vec<usize> =
        (0..heap.blocks().len()).filter(|block| heap.type_name(*block) == "chunk of bumpalo").collect();
    let mut chains: Vec<Vec<String>> = chunks
        .iter()
        .map(|chunk| why.chain(*chunk).into_iter().map(|holder| holder.name).collect())
        .collect();
    chains.sort_by_key(Vec::len);
    let (chains, boxed): (Vec<_>, Vec<_>) = chains.into_iter().partition(|chain| chain[0].starts_with(ARENA));
    assert!(chains.len() >= 2, "{chains:?}");
    for (before, chain) in chains.iter().enumerate() {
        assert!(chain[0].ends_with(".current_chunk_footer"), "{chain:?}");
        assert_eq!(chain[1..], vec!["chunk of bumpalo.prev"; before]);
    }
    // The static `INSIDE` has a pointer to a value of the arena. This pointer does not hold the chunk.
    assert!(!boxed.is_empty());
    let first = ["held from outside of the heap", "bumpalo::Bump<1>.current_chunk_footer"];
    assert!(boxed.iter().all(|chain| chain[..2] == first), "{boxed:?}");
    assert!(!heap.statics().any(|(path, _)| path.contains("INSIDE")));
}

const ARENA: &str = "static typed_heap_threads::linux::ARENA";

/// A static leads to a value of an arena, and this value leads to another value. Each chunk's footer contains the start
/// of the used part.
#[test]
fn chunks_consist_of_values_and_a_rest() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_threads");
    let scan = ScanMemory::new(&victim.dump).unwrap();
    let core = victim.core(&[]);
    let memory = LayeredMemory::new(&scan, &core);
    let heap = victim.heap(&memory);
    let census = heap.census();
    let value = "typed_heap_threads::linux::Value in a chunk of bumpalo";
    let row = census.rows.iter().find(|row| row.name == value).unwrap();
    assert_eq!((row.blocks, row.bytes), (2, 2 * 968));
    assert_eq!(census.rows.iter().map(|row| row.bytes).sum::<u64>(), census.bytes);
    assert!(census.typed_bytes < census.bytes);

    let waste = heap.waste(&memory);
    let chunks = waste.rows.iter().filter(|row| row.unused == WasteKind::Chunks);
    let mut chunks: Vec<_> = chunks
        .map(|row| {
            assert_eq!((&*row.name, row.unused_bytes), ("chunk of bumpalo", row.places - row.full_places));
            let held_by = row.held_by.as_deref().unwrap_or_default();
            (held_by.starts_with(ARENA), held_by.ends_with(".current_chunk_footer"), row.full_places)
        })
        .collect();
    chunks.sort_unstable();
    assert_eq!(chunks, [(false, true, 2 * 968), (true, true, 3 * 960)]);
}

/// In a core file every thread has a stack pointer. A block that only a thread's stack holds belongs to that thread.
#[test]
fn stacks_hold_blocks() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_threads");
    let core = victim.core(&[(0, stack_pointer(victim.child.id(), "waiting"))]);
    let scan = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&LayeredMemory::new(&scan, &core));
    assert_eq!(chain_of(&heap, "[typed_heap_threads::linux::Waiting]"), ["thread 1"]);
    // `vec!` has allocated the block of the boxed array, so the type of the block is a slice.
    assert_eq!(chain_of(&heap, "[u16]"), ["thread 1", "[typed_heap_threads::linux::Boxed].data"]);
    // The stack of the other thread is unknown.
    let outside = ["held from outside of the heap"];
    assert_eq!(chain_of(&heap, "table (u32, typed_heap_threads::linux::Running)"), outside);
    let (_, by_statics) = heap.held_by_statics();
    let (_, by_roots) = heap.held_by_roots();
    assert!(by_roots > by_statics, "{by_roots} {by_statics}");
}

/// A channel without capacity has no room for a value. The waiting thread holds the value, and the channel refers to
/// the thread.
#[test]
fn a_thread_that_sends_holds_the_value() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_queues");
    let core = victim.core(&[(0, stack_pointer(victim.child.id(), "sender"))]);
    let scan = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&LayeredMemory::new(&scan, &core));
    assert_eq!(chain_of(&heap, "typed_heap_queues::Item<4>"), ["thread 1"]);
    let channel = "counter::Counter<zero::Channel<Box<typed_heap_queues::Item<4>>>>";
    let waiting = chain_of(&heap, "ArcInner<context::Inner>");
    assert_eq!(waiting[waiting.len() - 2..], [&*format!("{channel}.chan"), "[waker::Entry]"]);
}

/// Reads a stopped process. The positions of its threads come only from the kernel.
#[test]
fn a_stopped_process_is_read() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_threads");
    let pid = victim.child.id();
    assert!(ProcessMemory::stopped(pid).unwrap().is_none());
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
        assert!(status.success());
    };
    signal("-STOP");
    let stopped = (0..1000).find_map(|_| {
        thread::sleep(Duration::from_millis(5));
        ProcessMemory::stopped(pid).unwrap()
    });
    let memory = stopped.expect("it is stopped");
    let read = |address, into: &mut [u8]| memory.read(address, into);
    let mut image = read_image(&read, &memory.mappings().unwrap(), 1_000_000).unwrap();
    image.symbolize(&SymbolOptions::new());
    let heap = TypedHeap::new(&image, &victim.info, image.modules()[0].bias.unwrap(), &memory).unwrap();
    let [waiting] = &chain_of(&heap, "[typed_heap_threads::linux::Waiting]")[..] else { panic!() };
    assert!(waiting.starts_with("thread ") && waiting.contains(" (waiting)"), "{waiting}");
    let [running] = &chain_of(&heap, "table (u32, typed_heap_threads::linux::Running)")[..] else { panic!() };
    assert!(running.starts_with("thread ") && running.contains(" (running)"), "{running}");
    let captured = chain_of(&heap, "[typed_heap_threads::linux::Captured]");
    assert!(memory.is_stopped());
    signal("-CONT");
    assert!((0..1000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        !memory.is_stopped()
    }));
    // A frame of std has the closure, and calls it.
    assert!(captured[0].contains(" (running): typed_heap_threads::linux::"), "{captured:?}");
}

/// The stack pointer of a waiting thread.
fn stack_pointer(process: u32, name: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let is_it = |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap().trim_end() == name;
    let task = tasks.map(|task| task.unwrap().path()).find(is_it).unwrap();
    let call = fs::read_to_string(task.join("syscall")).unwrap();
    let pointer = call.trim_end().rsplit(' ').nth(1).unwrap();
    u64::from_str_radix(&pointer[2..], 16).unwrap()
}

/// The names of the holders of the block with this type.
fn chain_of(heap: &TypedHeap<'_>, name: &str) -> Vec<String> {
    let block = (0..heap.blocks().len()).find(|block| heap.type_name(*block) == name);
    let chain = heap.holding_chains().chain(block.unwrap_or_else(|| panic!("{name}")));
    chain.into_iter().map(|holder| holder.name).collect()
}
