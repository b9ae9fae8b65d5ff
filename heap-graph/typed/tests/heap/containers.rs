//! Containers of crates, channels and counted values. The source of the program contains the expected contents.

use std::collections::BTreeMap;

use dmd_analyze::program::{HeapSummary, ProgramOptions};
use dmd_analyze::symbolize::SymbolOptions;
use dmd_analyze::{Analysis, AnalyzeOptions};
use typed_heap::{MemorySource, ScanMemory, TypedHeap, WasteKind};

use crate::Victim;

/// For each type of block and each path of fields: the number of blocks of the type to which a field of this path
/// leads.
fn holders(heap: &TypedHeap<'_>) -> BTreeMap<(String, String), u64> {
    let mut all = BTreeMap::new();
    let own = |block| heap.type_name(block).replace("typed_heap_containers::", "");
    for from in 0..heap.blocks().len() {
        for (to, path) in heap.edges(from) {
            let holder = format!("{} {}", own(from), path.unwrap_or_else(|| "a word".to_owned()));
            *all.entry((own(to), holder)).or_default() += 1;
        }
    }
    all
}

#[test]
fn containers_hold_what_their_source_says() {
    let victim = Victim::of("typed_heap_containers");
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let census = heap.census();
    assert_eq!((census.typed_blocks, census.misfits), (census.blocks, 0), "{census:#?}");
    let disagreements: Vec<_> = heap.agreement().disagreements().collect();
    assert!(disagreements.is_empty(), "{disagreements:?}");

    let all = holders(&heap);
    let of = |name: &str| -> Vec<(&str, u64)> {
        let all = all.iter().filter(|((of, _), _)| of == name);
        all.map(|((_, holder), count)| (holder.as_str(), *count)).collect()
    };
    let item = |number: usize| format!("Item<{number}>");
    for (name, expected) in [
        (item(1), vec![("Store .inline[]", 2)]),
        (item(2), vec![("[Box<Item<2>>] []", 5)]),
        ("[Box<Item<2>>]".to_owned(), vec![("Store .spilled", 1)]),
        (item(3), vec![("Store .wide[]", 3)]),
        (item(4), vec![("ThinVec<[Box<Item<4>>]> []", 3)]),
        ("ThinVec<[Box<Item<4>>]>".to_owned(), vec![("Store .thin", 1)]),
        (item(5), vec![("linked_list::Node<Box<Item<5>>> .element", 3)]),
        (item(6), vec![("[Box<Item<6>>] []", 4)]),
        // Channels of the standard library, unbounded and bounded, and of tokio.
        (item(7), vec![("list::Block<Box<Item<7>>> []", 3)]),
        (item(8), vec![("[array::Slot<Box<Item<8>>>] []", 2)]),
        (item(9), vec![("tokio::sync::mpsc::block::Block<Box<Item<9>>> .values[]", 4)]),
        (item(10), vec![("ArcInner<[Box<Item<10>>]> []", 3)]),
        // Values behind a vtable, also inside another type.
        ("ArcInner<Mutex<Job>>".to_owned(), vec![("Store .job", 1)]),
        ("RcInner<Both<Job>>".to_owned(), vec![("Store .within", 1)]),
        ("[Item<11>]".to_owned(), vec![("ArcInner<Mutex<Job>> .data", 1), ("RcInner<Both<Job>> .value", 1)]),
        // A weak reference counts only if the value was dropped: it then holds the value's memory.
        ("RcInner<Item<12>>".to_owned(), vec![("Store .watched", 1)]),
        ("RcInner<Gone>".to_owned(), vec![("Store .gone", 1)]),
        ("[Item<13>]".to_owned(), vec![("Store .instead", 1)]),
        ("ArcInner<str>".to_owned(), vec![("Store .shared", 1), ("Store .text_of_bytes", 1)]),
        // A tail inside the last field: with unknown length, with the pointer's length, and as an array.
        (item(14), vec![("Counted<Listed<Option<Box<Item<14>>>>> .value.items[].Some", 3)]),
        ("Counted<Listed<Option<Box<Item<14>>>>>".to_owned(), vec![("Store .open", 1)]),
        (item(15), vec![("Both<Both<[Box<Item<15>>]>> .value.value[]", 5)]),
        ("Both<Both<[Box<Item<15>>]>>".to_owned(), vec![("Store .sliced", 1)]),
        (item(16), vec![("ArcInner<Mutex<[Box<Item<16>>; 2]>> []", 2)]),
        ("ArcInner<Mutex<[Box<Item<16>>; 2]>>".to_owned(), vec![("Store .locked", 1)]),
    ] {
        let name = name.as_str();
        assert_eq!(of(name), expected, "{name}");
    }
    let requested = |path: &str| -> Vec<u64> {
        let edges = (0..heap.blocks().len()).flat_map(|from| heap.edges(from));
        let to = edges.filter(|(_, found)| found.as_deref() == Some(path));
        to.map(|(to, _)| heap.blocks()[to].requested).collect()
    };
    // The short text is inline, without a pointer.
    let texts = [".whole.ptr", ".part.ptr", ".buffer.ptr", ".text", ".short"].map(requested);
    assert_eq!(texts, [vec![100], vec![100], vec![300], vec![40], vec![]]);
    // Two parts of one buffer. Its shared block contains its address, its capacity and a count.
    assert_eq!([".whole.data", ".part.data"].map(requested), [vec![24], vec![24]]);
    let waste = heap.waste(&memory);
    let unused = |name: &str| {
        let row = waste.rows.iter().find(|row| row.name.replace("typed_heap_containers::", "") == name);
        row.filter(|row| row.unused == WasteKind::Capacity).map(|row| row.unused_bytes)
    };
    assert_eq!(unused("[Box<Item<2>>]"), Some(8));
    assert_eq!(unused("ThinVec<[Box<Item<4>>]>"), Some(4 * 8));
}

/// The two halves of each leaked pair hold each other. A field of each half holds its values. In each pair, one half
/// counts as held by a cycle.
#[test]
fn cycles_hold_what_they_have() {
    let victim = Victim::of("typed_heap_containers");
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let why = heap.holding_chains();
    let holders = |name: &str| -> Vec<(String, u64)> {
        let blocks = 0..heap.blocks().len();
        let blocks =
            blocks.filter(|block| heap.type_name(*block).replace("typed_heap_containers::", "") == name);
        let rows = why.holders(blocks).into_iter();
        rows.map(|row| (row.name.replace("typed_heap_containers::", ""), row.blocks)).collect()
    };
    assert_eq!(holders("[Item<17>]"), [("RcInner<Parent>.rows".to_owned(), 20)]);
    assert_eq!(holders("[Item<18>]"), [("RcInner<Child>.columns".to_owned(), 20)]);
    let pairs = [holders("RcInner<Parent>"), holders("RcInner<Child>")].concat();
    let in_cycles = pairs.iter().filter(|(name, _)| name == "in a cycle that nothing else holds");
    assert_eq!(in_cycles.map(|(_, blocks)| blocks).sum::<u64>(), 20, "{pairs:?}");
}

/// Only a vector on the stack leads to the values, so its length is unknown. In another arena, the buffers of two
/// vectors lead to different values in the same bytes. One of the vectors is empty, and its buffer is stale. The heap
/// does not show which one, so the types of these values are unknown.
#[test]
fn values_of_an_arena_are_found_behind_vectors_on_the_stack() {
    let victim = Victim::of("typed_heap_arena");
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let census = heap.census();
    let in_chunks: BTreeMap<&str, (u64, u64)> = census
        .rows
        .iter()
        .filter(|row| row.name.ends_with(" in a chunk of bumpalo"))
        .map(|row| (row.name.split(' ').next().unwrap_or_default(), (row.blocks, row.bytes)))
        .collect();
    let values = 8 * 63;
    let expected = [
        ("[u8]", (values, values * 8)),
        ("typed_heap_arena::Node", (values, values * 40)),
        ("[&typed_heap_arena::Node]", (1, 8 * 8)),
        ("outgrown", (1, 4 * 8)),
        ("[u64]", (1, 3 * 8)),
    ];
    assert_eq!(in_chunks, BTreeMap::from(expected), "{census:#?}");
    // All used bytes of the first arena have a type, except the two numbers.
    let waste = heap.waste(&memory);
    let chunks = waste.rows.iter().filter(|row| row.unused == WasteKind::Chunks);
    let used = chunks.map(|row| row.full_places).sum::<u64>();
    assert_eq!(used, values * 48 + (8 + 4 + 3 + 2) * 8 + 100 * 56);
    assert_eq!(census.bytes - census.typed_bytes, 2 * 8 + 100 * 56, "{census:#?}");
    let outgrown = waste.rows.iter().filter(|row| row.unused == WasteKind::Outgrown);
    assert_eq!(outgrown.map(|row| row.unused_bytes).collect::<Vec<_>>(), [4 * 8]);
}

/// Rows about chunks: their name, the used bytes or elements, and the unused bytes.
fn chunk_rows(heap: &TypedHeap<'_>, memory: &dyn MemorySource) -> Vec<(String, u64, u64)> {
    let rows = heap.waste(memory).rows.into_iter();
    let rows = rows.filter(|row| row.name.contains("chunk") || row.name.ends_with("Leaf]"));
    rows.map(|row| (row.name, row.full_places, row.unused_bytes)).collect()
}

#[test]
fn arenas_without_footers_have_values_and_a_rest() {
    let victim = Victim::of("typed_heap_upward");
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let census = heap.census();
    let row = |name: &str| {
        let row = census.rows.iter().find(|row| row.name == name);
        row.map(|row| (row.blocks, row.bytes)).unwrap_or_else(|| panic!("{name}: {census:#?}"))
    };
    // The values of typed-arena are the elements of its vectors.
    assert_eq!(row("[typed_heap_upward::Leaf]").0, 2);
    assert_eq!(row("typed_heap_upward::Node in a chunk [u8]"), (130, 130 * 32));
    assert_eq!(row("chunk [u8]").0, 2);
    // The headers contain the ends of the used parts: 16 bytes and 32 places of marks are unused.
    let marks = "typed_heap_upward::Mark in a chunk of typed_heap_upward";
    assert_eq!(row(marks), (50, 50 * 24));
    assert_eq!(row("chunk of typed_heap_upward").0, 2);
    let headed = ("chunk of typed_heap_upward", 50 * 24, 2 * 16 + 32 * 24);
    // The first chunk of the upward arena is full: its used part is unknown, and all its bytes are values.
    let expected = [("chunk [u8]", 2 * 32, 4096 - 2 * 32), headed, ("[typed_heap_upward::Leaf]", 15, 5 * 24)];
    let rows = chunk_rows(&heap, &memory);
    assert_eq!(rows, expected.map(|(name, used, unused)| (name.to_owned(), used, unused)));
    assert_eq!((census.typed_blocks, census.misfits), (census.blocks, 0), "{census:#?}");

    let mut dump = dmd_analyze::read(victim.folder.path().join("dump.json")).unwrap();
    dump.symbolize(&SymbolOptions::new());
    let analysis = Analysis::new(dump, &AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX));
    let summary = HeapSummary::new(&analysis, &ProgramOptions::new());
    // The function that asked typed-arena for the values.
    let sites: Vec<&str> = summary.tables[0].rows.iter().map(|row| &*row.name).collect();
    assert!(sites.contains(&"typed_heap_upward::main::{closure}"), "{sites:?}");
    assert!(!sites.iter().any(|site| site.contains("typed_arena")), "{sites:?}");
}
