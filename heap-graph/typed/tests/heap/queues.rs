//! Channels, queues, tables and trees whose places have contained other values before. The source of the program
//! contains the expected values.

use std::collections::BTreeMap;

use typed_heap::{MemorySource, ScanMemory, TypedHeap};

use crate::Victim;

/// For each type of the program's items and each path of fields to some of them: the numbers of these items,
/// ascending.
fn items(heap: &TypedHeap<'_>, memory: &dyn MemorySource) -> BTreeMap<(usize, String), Vec<u64>> {
    let mut all: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    let own = |block| heap.type_name(block).replace("typed_heap_queues::", "");
    for from in 0..heap.blocks().len() {
        for (to, path) in heap.edges(from) {
            let name = own(to);
            let (start, counted) = match name.strip_prefix("ArcInner<") {
                Some(rest) => (rest, 16),
                None => (&*name, 0),
            };
            let Some(container) = start.strip_prefix("Item<") else { continue };
            let container = container.trim_end_matches('>').parse().unwrap();
            let mut number = [0; 8];
            assert_eq!(memory.read(heap.blocks()[to].address + counted, &mut number), 8);
            let holder = format!("{} {}", own(from), path.unwrap());
            all.entry((container, holder)).or_default().push(u64::from_le_bytes(number));
        }
    }
    all.values_mut().for_each(|numbers| numbers.sort_unstable());
    all
}

#[test]
fn places_that_are_empty_now_hold_nothing() {
    let victim = Victim::of("typed_heap_queues");
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let census = heap.census();
    assert_eq!((census.typed_blocks, census.misfits), (census.blocks, 0), "{census:#?}");
    let disagreements: Vec<_> = heap.agreement().disagreements().collect();
    assert!(disagreements.is_empty(), "{disagreements:?}");

    let items = items(&heap, &memory);
    let of = |container: usize| -> Vec<(&str, &[u64])> {
        let all = items.iter().filter(|((of, _), _)| *of == container);
        all.map(|((_, holder), numbers)| (holder.as_str(), numbers.as_slice())).collect()
    };
    let numbers = |range: core::ops::Range<u64>| range.collect::<Vec<_>>();
    // Container 1 has a value that no thread has received. The value of container 2 was received.
    assert_eq!(of(1), [("ArcInner<tokio::sync::oneshot::Inner<Box<Item<1>>>> .value.Some", &[1][..])]);
    assert_eq!(of(2), [("Store .received.1", &[1][..])]);
    let broadcast =
        "[tokio::loom::std::mutex::Mutex<tokio::sync::broadcast::Slot<Arc<Item<3>>>>] [].val.Some";
    assert_eq!(of(3), [(broadcast, &[0, 1, 2][..])]);
    // Only the waiting thread holds the value.
    let waits = |block: &usize| heap.type_name(*block).ends_with("::Item<4>");
    assert_eq!(((0..heap.blocks().len()).filter(waits).count(), of(4)), (1, Vec::new()));
    let array = "[crossbeam_channel::flavors::array::Slot<Box<Item<5>>>] [].msg";
    assert_eq!(of(5), [(array, &[4, 5][..])]);
    let list = "crossbeam_channel::flavors::list::Block<Box<Item<6>>> .slots[].msg";
    assert_eq!(of(6), [(list, &[0, 1, 2][..])]);
    // Container 7 is a queue whose first element is at a higher address than its last element.
    let (moved, wrapped) = (numbers(0..5), numbers(5..11));
    assert_eq!(of(7), [("[Box<Item<7>>] []", &*wrapped), ("[Moved<7>] []", &*moved)]);
    // Some buckets of container 8 have become empty again.
    let (kept, removed) = (numbers(0..20), numbers(20..27));
    assert_eq!(of(8), [("[Moved<8>] []", &*removed), ("table (u64, Box<Item<8>>) [].1", &*kept)]);
    assert_eq!(of(9), [("table (Box<Item<9>>, u64) [].0", &*numbers(0..12))]);
    // The nodes hold all keys and values. The places after them contained other keys and values before.
    for (container, member) in [(10, "keys"), (11, "values")] {
        let path = |node: &str| format!("{node}<Box<Item<10>>, Box<Item<11>>> .{member}[]");
        let (inner, leaf) = (path("InternalNode"), path("LeafNode"));
        let cut = format!("[(Moved<10>, Moved<11>)] [].{}", container - 10);
        let all = of(container);
        assert_eq!(all.iter().map(|(holder, _)| *holder).collect::<Vec<_>>(), [&*inner, &*leaf, &*cut]);
        let mut kept = [all[0].1, all[1].1].concat();
        kept.sort_unstable();
        assert_eq!(kept, (0..50).filter(|number| number % 5 != 0).collect::<Vec<_>>());
        assert_eq!(all[2].1, (0..10).map(|number| 5 * number).collect::<Vec<_>>());
    }
    // Each node except the first is held by another node.
    let blocks = 0..heap.blocks().len();
    let nodes = blocks.clone().filter(|block| heap.type_name(*block).starts_with("LeafNode<Box<")).count();
    let edges = blocks.flat_map(|block| heap.edges(block)).filter_map(|(_, path)| path);
    assert_eq!(edges.filter(|path| path == ".nodes[]").count(), nodes);
}
