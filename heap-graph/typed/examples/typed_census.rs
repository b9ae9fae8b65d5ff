//! Prints the heap of a program by type: `typed_census DUMP [--core FILE | --pid PID] [--snapshot FILE]
//! [--waste] [--why TYPE]`. The dump must be from scan mode. With a core file or a process, statics are included.

use std::error::Error;
use std::fs::{self, File};
use std::time::Instant;

use dmd_analyze::{DumpReadOptions, read_with, symbolize::SymbolOptions};
use heap_graph::snapshot::{SnapshotWriteOptions, write};
use typed_heap::{CoreFile, DebugInfo, MemorySource, ProcessMemory, ScanMemory, TypedHeap, WasteRow};

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, rest @ ..] = &arguments[..] else { return Err("typed_census DUMP".into()) };
    let option = |name: &str| rest.iter().position(|word| word == name).and_then(|at| rest.get(at + 1));
    let started = Instant::now();
    let mut dump = read_with(path, &DumpReadOptions::new().contents(true).max_entries(100_000_000))?;
    let read = started.elapsed();
    for note in dump.symbolize(&SymbolOptions::new()) {
        eprintln!("{note}");
    }
    let symbolized = started.elapsed();
    let module = dump.modules().first().ok_or("the dump lists no modules")?;
    let file = fs::read(&module.path)?;
    let before = started.elapsed();
    let info = DebugInfo::read(&file)?;
    let loaded = started.elapsed();
    let memory: Box<dyn MemorySource + '_> = match (option("--core"), option("--pid")) {
        (Some(core), _) => Box::new(CoreFile::open(core)?),
        (_, Some(pid)) => Box::new(ProcessMemory::open(pid.parse()?)?),
        _ => Box::new(ScanMemory::new(&dump)?),
    };
    let heap = TypedHeap::new(&dump, &info, module.bias.unwrap_or(0), &*memory)?;
    let typed = started.elapsed();
    let census = heap.census();
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    println!(
        "{} blocks, {} bytes; typed {:.2} % of bytes, {:.2} % of blocks; wrong size {}",
        census.blocks,
        census.bytes,
        percent(census.typed_bytes, census.bytes),
        percent(census.typed_blocks, census.blocks),
        census.misfits
    );
    println!(
        "{} edges: {:.1} % with a member or variant, {} without a path",
        census.edges,
        percent(census.named_edges, census.edges),
        census.edges_without_path
    );
    let (held, bytes) = heap.held_by_statics();
    println!(
        "statics: {} edges, hold {held} blocks, {:.2} % of bytes",
        heap.statics().count(),
        percent(bytes, census.bytes)
    );
    println!("{:?}", heap.agreement());
    println!(
        "{} types, {} vtables; read {read:.1?}, symbolized {:.1?}, DWARF {:.1?}, typed {:.1?}",
        info.type_count(),
        info.vtable_count(),
        symbolized - read,
        loaded - before,
        typed - loaded
    );
    for row in census.rows.iter().take(30) {
        println!("{:>12} {:>9} {:>9} {}", row.bytes, row.blocks, row.by_owner, row.name);
    }
    if rest.iter().any(|word| word == "--waste") {
        let waste = heap.waste(&*memory);
        println!(
            "{} bytes unused; {} blocks have an unknown length, {} bytes; slop {}",
            waste.unused_bytes, waste.unknown_blocks, waste.unknown_bytes, waste.slop
        );
        for row in waste.rows.iter().take(30) {
            let WasteRow { unused_bytes, bytes, blocks, name, unused, .. } = row;
            println!("{unused_bytes:>12} {bytes:>12} {blocks:>9} {name}: {}", unused.text());
        }
    }
    if let Some(name) = option("--why") {
        let of_type = |block: &usize| heap.type_name(*block) == *name;
        let blocks: Vec<usize> = (0..heap.blocks().len()).filter(of_type).collect();
        let why = heap.holding_chains();
        for row in why.holders(blocks.iter().copied()).iter().take(30) {
            println!("{:>12} {:>9} {}", row.bytes, row.blocks, row.name);
        }
        for link in blocks.first().map(|block| why.chain(*block)).unwrap_or_default() {
            println!("  {}", link.name);
        }
    }
    if let Some(path) = option("--snapshot") {
        write(&heap.graph(&dump)?, File::create(path)?, &SnapshotWriteOptions::default())?;
    }
    Ok(())
}
