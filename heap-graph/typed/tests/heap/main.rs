//! The heap of a small program. The source of the program contains the expected blocks.

#![allow(clippy::unwrap_used, reason = "in a test")]

mod branches;
mod containers;
mod core_of;
mod damaged;
mod queues;
mod several_threads;
mod tasks;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod threads;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod truth;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use dmd_analyze::image::read_image;
use dmd_analyze::{Dump, DumpReadOptions, read_with, symbolize::SymbolOptions};
use tempfile::TempDir;
use typed_heap::{
    CoreFile, DebugInfo, LayeredMemory, MemorySource, ProcessMemory, ScanMemory, TypedHeap, WasteKind,
};

/// A program that has written a dump and now waits.
struct Victim {
    child: Child,
    dump: Dump,
    info: DebugInfo,
    folder: TempDir,
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// The path of an example program.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().with_file_name("examples").join(name)
}

/// The command of an emulator, if the tests are built for another processor.
fn runner() -> String {
    std::env::var("PROGRAM_RUNNER").unwrap_or_default()
}

impl Victim {
    fn start() -> Self {
        Self::of("typed_heap_victim")
    }

    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump.json");
        let program = program(name);
        let runner = runner();
        let mut words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(&path).env("DMD", "--mode=scan --stacks=full --quiet");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut dump = read_with(&path, &DumpReadOptions::new().contents(true)).unwrap();
        dump.symbolize(&SymbolOptions::new());
        let info = DebugInfo::read(&std::fs::read(&program).unwrap()).unwrap();
        Self { child, dump, info, folder }
    }

    fn heap(&self, memory: &dyn MemorySource) -> TypedHeap<'_> {
        let bias = self.dump.modules()[0].bias.unwrap_or(0);
        TypedHeap::new(&self.dump, &self.info, bias, memory).unwrap()
    }
}

/// For each type of the program, the number of its blocks and their requested bytes.
fn by_type(heap: &TypedHeap<'_>) -> BTreeMap<String, (u64, u64)> {
    let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (index, block) in heap.blocks().iter().enumerate() {
        let sum = types.entry(heap.type_name(index)).or_default();
        *sum = (sum.0 + 1, sum.1 + block.requested);
    }
    types
}

#[test]
fn each_block_has_its_type() {
    let victim = Victim::start();
    let heap = victim.heap(&ScanMemory::new(&victim.dump).unwrap());
    let types = by_type(&heap);
    let census = heap.census();
    assert_eq!((census.typed_blocks, census.misfits), (census.blocks, 0), "{census:?}");
    assert_eq!(heap.agreement().disagreements().count(), 0, "{:?}", heap.agreement());
    let group = if cfg!(target_arch = "x86_64") { 16 } else { 8 };
    for (name, blocks, bytes) in [
        ("[typed_heap_victim::User]", 1, 10 * (24 + 16 + 8)),
        // The counts of strong and weak references, and the session with its queue and its shapes.
        ("ArcInner<typed_heap_victim::Session>", 1, 16 + 8 + 32 + 24),
        ("[typed_heap_victim::Shape]", 1, 12 * 72),
        ("[u16]", 1, 2 * 64),
        ("table (u32, u64)", 1, 128 * 16 + 128 + group),
        ("[Box<dyn typed_heap_victim::Run>; 2]", 1, 2 * 16),
        ("typed_heap_victim::Copies", 1, 24),
        ("[u64]", 1, 8 * 20),
        ("typed_heap_victim::Nothing", 1, 8 * 5),
        ("typed_heap_victim::Node", 50, 50 * 16),
    ] {
        assert_eq!(types.get(name), Some(&(blocks, bytes)), "{name}: {types:?}");
    }
    let texts = heap.blocks().iter().enumerate().filter(|(index, _)| heap.type_name(*index) == "str");
    let lengths: Vec<u64> = texts.map(|(_, block)| block.requested).collect();
    let of_length = |length: u64| lengths.iter().filter(|other| **other == length).count();
    assert!(of_length(32) >= 4 && of_length("somebody@example.org".len() as u64) >= 4, "{lengths:?}");
}

/// The unused memory of the program's containers. The capacity beyond the users is known only if statics are read: only
/// a static contains the number of users.
fn unused(heap: &TypedHeap<'_>, memory: &dyn MemorySource) -> Vec<(String, WasteKind, u64)> {
    let waste = heap.waste(memory);
    assert_eq!(waste.unused_bytes, waste.rows.iter().map(|row| row.unused_bytes).sum::<u64>());
    waste.rows.into_iter().map(|row| (row.name, row.unused, row.unused_bytes)).collect()
}

#[test]
fn unused_memory_is_found() {
    let victim = Victim::start();
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let rows = unused(&heap, &memory);
    let expect = |name: &str, of: WasteKind, bytes: u64| {
        assert!(rows.contains(&(name.to_owned(), of, bytes)), "{name}: {rows:?}");
    };
    expect("table (u32, u64)", WasteKind::Buckets, (128 - 100) * 16);
    expect("[u16]", WasteKind::Capacity, (64 - 3) * 2);
    assert!(!rows.iter().any(|(name, ..)| name == "[u64]"), "{rows:?}");
    // Circles use 16 of 72 bytes, dots 8, and nested shapes 40; 32 of these 40 are for the inner value.
    let shapes = 3 * (72 - 16) + 4 * (72 - 8) + 3 * (72 - 40);
    expect("typed_heap_victim::Shape", WasteKind::Variants, shapes);
    expect("Option<[u64; 3]>", WasteKind::Variants, 2 * 24);
    let waste = heap.waste(&memory);
    let shapes = waste.rows.iter().find(|row| row.name == "typed_heap_victim::Shape").unwrap();
    assert_eq!((shapes.values, shapes.blocks, shapes.bytes), (12, 1, 12 * 72));
    assert_eq!(shapes.percent_full(), None);
    let row = |name: &str| waste.rows.iter().find(|row| row.name.starts_with(name)).unwrap();
    let table = row("table (u32, u64)");
    assert_eq!((table.places, table.full_places, table.percent_full()), (128, 100, Some(78)));
    let queue = row("[u16]");
    assert_eq!((queue.places, queue.full_places, queue.percent_full()), (64, 3, Some(4)));
    let nodes = ["LeafNode<u64,", "InternalNode<u64,"].map(row);
    assert_eq!(nodes.map(|row| row.full_places).iter().sum::<u64>(), 30);
    assert!(nodes.iter().all(|row| row.places == 11 * row.blocks), "{nodes:?}");
    // Each node has room for 11 keys with their values. A node with child nodes also has room for a pointer
    // for each key.
    let nodes = |prefix: &str, each: u64| {
        let unused: u64 = rows.iter().filter(|row| row.0.starts_with(prefix)).map(|row| row.2).sum();
        assert_eq!(unused % each, 0, "{rows:?}");
        unused / each
    };
    let empty = nodes("LeafNode<u64,", 8 + 16) + nodes("InternalNode<u64,", 8 + 16 + 8);
    let types = by_type(&heap);
    let count = types.iter().filter(|(name, _)| name.contains("Node<u64,")).map(|(_, (blocks, _))| blocks);
    assert_eq!(11 * count.sum::<u64>() - empty, 30, "{rows:?}");
}

#[test]
fn equal_strings_are_found() {
    let victim = Victim::start();
    let scan = ScanMemory::new(&victim.dump).unwrap();
    // The dump alone contains only whole words, so it lacks the last bytes of the e-mail addresses.
    let duplicates = victim.heap(&scan).duplicates(&scan);
    assert!(duplicates.rows.is_empty() && duplicates.unknown_blocks >= 4, "{duplicates:?}");
    if !statics_are_readable() {
        return;
    }
    let process = ProcessMemory::open(victim.child.id()).unwrap();
    let memory = LayeredMemory::new(&scan, &process);
    let heap = victim.heap(&memory);
    let duplicates = heap.duplicates(&memory);
    // Four users have the same e-mail address, and different names.
    let email = "somebody@example.org".len() as u64;
    let row = duplicates.rows.iter().find(|row| row.held_by == "[typed_heap_victim::User].email");
    let row = row.unwrap_or_else(|| panic!("{duplicates:?}"));
    assert_eq!((row.name.as_str(), row.blocks, row.bytes, row.different), ("str", 3, 3 * email, 1));
    let example = heap.blocks().iter().find(|block| block.address == row.example).unwrap();
    assert_eq!(example.requested, email);
    assert!(!duplicates.rows.iter().any(|row| row.held_by.ends_with(".name")), "{duplicates:?}");
    assert_eq!(duplicates.bytes, duplicates.rows.iter().map(|row| row.bytes).sum::<u64>());
}

/// Whether a test can read the statics. An emulated program has its memory at other addresses.
fn statics_are_readable() -> bool {
    runner().is_empty()
}

/// The number of blocks that statics hold: the users with their names, e-mail addresses, session, queue and shapes; the
/// table; four nodes of keys; the jobs with their array and numbers; the list.
const HELD_BY_STATICS: usize = (1 + 4 + 4 + 3) + 1 + 4 + (1 + 2 + 1) + 50;

/// The core file contains the tables of the engine, so its heap needs no dump.
#[test]
fn a_core_file_alone_has_all() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    core_of::write(victim.child.id(), &path, &[]);
    let is_elf = |path: &str| CoreFile::is_elf(path);
    assert!(
        CoreFile::is_elf(&path)
            && !is_elf("/dev/null")
            && !is_elf(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
    );
    let core = CoreFile::open(&path).unwrap();
    let read = |address, into: &mut [u8]| core.read(address, into);
    let mut image = read_image(&read, &core.mappings(), 1_000_000).unwrap();
    assert_eq!(image.modules()[0], victim.dump.modules()[0]);
    image.symbolize(&SymbolOptions::new());
    let bias = image.modules()[0].bias.unwrap();
    let heap = TypedHeap::new(&image, &victim.info, bias, &core).unwrap();
    assert_eq!(heap.held_by_statics().0, HELD_BY_STATICS);

    // The dump is older than the core file. After the dump, the program printed a line, and the standard library
    // allocated some blocks. So the test compares only the program's own types.
    let of_dump = victim.heap(&ScanMemory::new(&victim.dump).unwrap());
    let types = by_type(&heap);
    for (name, amounts) in by_type(&of_dump) {
        if name.contains("typed_heap_victim") {
            // Only the static shows that a vector owns the elements.
            let name = name.replace("Run>; 2]", "Run>]");
            assert_eq!(types.get(&name), Some(&amounts), "{name}");
        }
    }
    let strings = heap.duplicates(&core).rows;
    assert!(strings.iter().any(|row| row.held_by == "[typed_heap_victim::User].email"), "{strings:?}");
}

#[test]
fn a_static_holds_all() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::start();
    let (scan, process) =
        (ScanMemory::new(&victim.dump).unwrap(), ProcessMemory::open(victim.child.id()).unwrap());
    let memory = LayeredMemory::new(&scan, &process);
    let heap = victim.heap(&memory);
    let rows = unused(&heap, &memory);
    let users = ("[typed_heap_victim::User]".to_owned(), WasteKind::Capacity, 6 * 48);
    assert!(rows.contains(&users), "{rows:?}");

    let why = heap.holding_chains();
    let of_type = |name: &str| -> Vec<usize> {
        (0..heap.blocks().len()).filter(|block| heap.type_name(*block) == name).collect()
    };
    let chain = |name: &str| -> Vec<String> {
        why.chain(of_type(name)[0]).into_iter().map(|holder| holder.name).collect()
    };
    assert_eq!(
        chain("[u16]"),
        [
            "static typed_heap_victim::STORE.users",
            "[typed_heap_victim::User].session",
            "ArcInner<typed_heap_victim::Session>.waiting",
        ]
    );
    assert_eq!(
        chain("[u64]"),
        [
            "static typed_heap_victim::STORE.jobs",
            "[Box<dyn typed_heap_victim::Run>]",
            "typed_heap_victim::Copies.data",
        ]
    );
    let rows = why.holders(of_type("typed_heap_victim::Node"));
    let rows: Vec<(&str, u64)> = rows.iter().map(|row| (row.name.as_str(), row.blocks)).collect();
    let nodes =
        [("typed_heap_victim::Node.next.Some", 49), ("static typed_heap_victim::STORE.first.Some", 1)];
    assert_eq!(rows, nodes);
    assert_eq!(heap.held_by_statics().0, HELD_BY_STATICS);
}
