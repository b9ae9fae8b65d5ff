//! Measures the types of a heap. `typed_heap PID|DUMP` takes a process that DMD records and that listens for requests,
//! or a dump in scan mode. It prints the time and memory of each step, and how reliable the types are. `typed_heap
//! layouts PROGRAM THREADS` prints the time and memory to read a program's debug information on this many threads.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use about_memory::live::ForkedProcess;
use dmd::analyze::image::{read_image, read_threads};
use dmd::analyze::symbolize::SymbolOptions;
use dmd::analyze::{Dump, DumpReadOptions, read_with};
use heap_graph::DominatorTree;
use typed_heap::{DebugInfo, MemorySource, ProcessMemory, ScanMemory, TypedHeap};

const MOST_ENTRIES: usize = 100_000_000;

/// The peak of the process's resident memory since the last call, in MB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default();
    let _ = fs::write("/proc/self/clear_refs", "5");
    peak / 1024
}

/// The CPU time of the main thread, in seconds.
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0) / 1e9
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    peak();
    let (start, before) = (Instant::now(), processor_time());
    let result = run();
    let (seconds, processor) = (start.elapsed().as_secs_f64(), processor_time() - before);
    println!("{what:<22} {seconds:>6.2} s, processor {processor:>5.2} s, at most {:>4} MB", peak());
    result
}

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    if let [layouts_of, program, threads] = &words[..]
        && layouts_of == "layouts"
    {
        return layouts(program, threads.parse().expect("THREADS must be a number"));
    }
    let source =
        words.into_iter().next().expect("usage: typed_heap PID|DUMP, or typed_heap layouts PROGRAM THREADS");
    let Ok(pid) = source.parse() else {
        let options = DumpReadOptions::new().contents(true).max_entries(MOST_ENTRIES);
        let dump = timed("read the dump", || read_with(&source, &options).unwrap());
        return measure(dump, |dump| Box::new(ScanMemory::new(dump).unwrap()));
    };
    let copy = timed("copy the process", || ForkedProcess::take(pid, Duration::from_secs(60)).unwrap());
    let (dump, memory) = timed("read the tables", || {
        let memory = ProcessMemory::open(copy.pid()).unwrap();
        let mappings = memory.mappings().unwrap();
        let read = |address, into: &mut [u8]| memory.read(address, into);
        let dump = read_image(&read, &mappings, MOST_ENTRIES).unwrap();
        let threads = read_threads(&read, &mappings).unwrap();
        (dump, memory.with_threads(threads))
    });
    measure(dump, |_| Box::new(memory));
}

fn layouts(program: &str, threads: usize) {
    let file = fs::read(program).unwrap();
    for _ in 0..5 {
        let info = timed(&format!("{threads} threads"), || DebugInfo::read_on(&file, threads).unwrap());
        println!("    {} types of a file of {} MB", info.type_count(), file.len() >> 20);
    }
}

fn measure(mut dump: Dump, memory_of: impl FnOnce(&Dump) -> Box<dyn MemorySource + '_>) {
    timed("look up symbols", || dump.symbolize(&SymbolOptions::new()));
    let module = &dump.modules()[0];
    let bias = module.bias.unwrap_or(0);
    let file = fs::read(&module.path).unwrap();
    let info = timed("debug information", || DebugInfo::read(&file).unwrap());
    println!("    of a file of {} MB with {} types", file.len() >> 20, info.type_count());
    let memory = memory_of(&dump);
    let heap = timed("types and pointers", || TypedHeap::new(&dump, &info, bias, &*memory).unwrap());
    let census = timed("by type", || heap.census());
    let waste = timed("waste", || heap.waste(&*memory));
    println!("    {} MB", waste.unused_bytes >> 20);
    let graph = timed("graph", || heap.graph(&dump).unwrap());
    let tree = timed("dominators", || DominatorTree::new(&graph));
    let tasks = timed("tasks", || heap.tasks(&*memory, &tree));
    println!("    {} tasks", tasks.tasks);

    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    println!("{} blocks, {} MB", census.blocks, census.bytes >> 20);
    println!("{:.2} % of bytes have a type", percent(census.typed_bytes, census.bytes));
    println!("{} blocks contradict the type of their stack", census.misfits);
    let with_path = census.edges - census.edges_without_path;
    println!("{:.2} % of {} pointers have a path", percent(with_path, census.edges), census.edges);
    for (name, pointers) in without_path(&heap).into_iter().take(5) {
        println!("    {pointers} of {name} have no path");
    }
    let (_, held) = heap.held_by_roots();
    println!("{:.2} % of bytes are held by statics, thread-locals and stacks", percent(held, census.bytes));
    let agreement = heap.agreement();
    let compared = agreement.agree + agreement.disagree;
    println!("{:.3} % of {compared} pointers contradict a stack", percent(agreement.disagree, compared));
    for (by_stack, by_owner, count) in agreement.disagreements().take(10) {
        println!("    {count} times {by_owner}, but {by_stack} by the stack");
    }
    println!("{} further pointers belong to merged functions", agreement.same_layout);
    for (by_stack, by_owner, count) in agreement.merged().take(10) {
        println!("    {count} times {by_owner}, but {by_stack} by the stack");
    }
    let (words, others) = words(&heap, &*memory);
    println!("{words} words point into a block; {others} typed pointers are not among them");
}

/// The types whose blocks have pointers without a path, with the number of these pointers, the largest number first.
fn without_path(heap: &TypedHeap<'_>) -> Vec<(String, usize)> {
    let mut all = BTreeMap::new();
    for block in 0..heap.blocks().len() {
        let pointers = heap.edges(block).filter(|(_, path)| path.is_none()).count();
        if pointers > 0 {
            *all.entry(heap.type_name(block)).or_default() += pointers;
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, pointers)| Reverse(*pointers));
    all
}

/// Returns two numbers: the number of words that point into a block, and the number of pairs of blocks with a typed
/// pointer but without such a word.
fn words(heap: &TypedHeap<'_>, memory: &dyn MemorySource) -> (u64, u64) {
    let blocks = heap.blocks();
    let mut buffer = Vec::new();
    let (mut words, mut others) = (0, 0);
    for (index, block) in blocks.iter().enumerate() {
        buffer.resize(block.requested as usize, 0);
        let filled = memory.read(block.address, &mut buffer);
        let mut targets = BTreeSet::new();
        for word in buffer[..filled].chunks_exact(8) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            let after = blocks.partition_point(|block| block.address <= word);
            let to =
                after.checked_sub(1).filter(|to| word - blocks[*to].address < blocks[*to].requested.max(1));
            words += u64::from(to.is_some());
            targets.extend(to);
        }
        others += heap.edges(index).filter(|(to, _)| !targets.contains(to)).count() as u64;
    }
    (words, others)
}
