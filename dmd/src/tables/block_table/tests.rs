//! Tests of the block table: the blocks that it returns, and the number of reads in a search. Callers cannot observe
//! this number.

use core::cell::Cell;

use super::{BlockTable, FoundBlock, TableBlock};
use crate::tables::trace_id::TraceId;

thread_local! {
    pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// The maximum number of reads in each plane. These reads take one or two microseconds.
const MOST_LOOKS: usize = 1600;

fn block(usable: usize) -> TableBlock {
    TableBlock { requested: usable, slop: 0, trace: TraceId(7), sampled: false, marked: false }
}

fn found(table: &BlockTable, planes: usize, address: usize) -> FoundBlock {
    LOOKS.set(0);
    let found = table.find(address);
    let looks = LOOKS.get();
    assert!(looks <= MOST_LOOKS * planes, "{looks} reads for {address:#x}");
    found
}

fn inside(start: usize, usable: usize) -> FoundBlock {
    FoundBlock::Inside(start, block(usable))
}

const HEAP: usize = 0x7f12_3450_0000;

/// A heap as after sampling, or after most blocks were freed: the block before the address is far away.
#[test]
fn a_search_in_an_empty_heap_is_short() {
    static TABLE: BlockTable = BlockTable::new();
    for start in (HEAP..HEAP + (200 << 20)).step_by(1 << 20) {
        assert!(TABLE.insert(start, block(48)));
        TABLE.remove(start);
    }
    assert!(TABLE.insert(HEAP - 4096, block(100)));
    assert!(TABLE.insert(HEAP + (300 << 20), block(5 << 20)));
    for address in (HEAP + 32..HEAP + (200 << 20)).step_by((1 << 20) + 16) {
        assert_eq!(found(&TABLE, 1, address), FoundBlock::Nothing, "{address:#x}");
    }
    assert_eq!(found(&TABLE, 1, HEAP + (3 << 20)), FoundBlock::Freed);
    assert_eq!(found(&TABLE, 1, usize::MAX), FoundBlock::Nothing);
    assert_eq!(found(&TABLE, 1, 8), FoundBlock::Nothing);
}

#[test]
fn blocks_of_all_sizes_are_found_from_inside() {
    static TABLE: BlockTable = BlockTable::new();
    let mut start = HEAP;
    for plane in [0, 8] {
        for bits in 4..42 {
            for usable in [(1_usize << bits) - 3, 1 << bits, (1 << bits) + 5] {
                start = (start + 4096).next_multiple_of(16) + plane;
                if (start + usable) >> 47 != 0 {
                    start = (1 << 44) + plane;
                }
                assert!(TABLE.insert(start, block(usable)));
                for at in [1, usable / 2, usable - 1] {
                    assert_eq!(found(&TABLE, 2, start + at), inside(start, usable), "{start:#x} {usable}");
                }
                assert_eq!(found(&TABLE, 2, start + usable), FoundBlock::Nothing, "{start:#x} {usable}");
                start += usable;
            }
        }
    }
}

/// A freed block that started in the same range of the heap is not returned as the block around an address.
#[test]
fn a_place_is_another_block_s_when_its_own_was_freed() {
    static TABLE: BlockTable = BlockTable::new();
    for usable in [20_000, 3 << 20, 400 << 20, 1 << 36] {
        let (first, second) = (HEAP + 64, HEAP + 128);
        assert!(TABLE.insert(first, block(usable)));
        TABLE.remove(first);
        assert_eq!(found(&TABLE, 1, first + usable - 1), FoundBlock::Nothing, "{usable}");
        assert!(TABLE.insert(second, block(usable)));
        assert_eq!(found(&TABLE, 1, second + usable - 1), inside(second, usable));
        assert_eq!(found(&TABLE, 1, second - 1), FoundBlock::Nothing);
        // The table still contains a small block that the program freed without a call of a hook.
        assert!(TABLE.insert(second + 1024, block(16)));
        assert_eq!(found(&TABLE, 1, second + 2048), inside(second, usable));
        TABLE.remove(second + 1024);
        TABLE.remove(second);
    }
}

/// The cells of a large block and of its sizes are free after the end of the block: the table does not grow with the
/// number of such blocks.
#[test]
fn a_large_block_leaves_its_cells_to_others() {
    static TABLE: BlockTable = BlockTable::new();
    assert!(TABLE.insert(HEAP + 64, block(16)));
    let before = TABLE.touched();
    for round in 1..100 {
        let large = HEAP + 80 + round % 4 * 16;
        assert!(TABLE.insert(large, block(round << 30)));
        assert_eq!(TABLE.get(large), Some(block(round << 30)));
        assert_eq!(TABLE.remove(large), Some(block(round << 30)));
        assert_eq!(TABLE.get(large), None);
    }
    assert_eq!(TABLE.get(HEAP + 64), Some(block(16)));
    assert!(TABLE.touched() <= before + 2 * 64, "{} {before}", TABLE.touched());
}

/// The table returns the live blocks in order, no matter where blocks start and end, and grows only with their number.
#[test]
fn blocks_in_any_order_at_any_place() {
    static TABLE: BlockTable = BlockTable::new();
    let mut live = std::collections::BTreeMap::new();
    let mut random = 1_u64;
    for round in 0..200_000_usize {
        random = random.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(0x1234_5677);
        let start = HEAP + ((random >> 40) as usize % 256) * 16 + [0, 8][round % 2];
        let size = [1, 15, 5000, 300_000][(random >> 20) as usize % 4];
        if live.remove(&start).is_some() {
            assert!(TABLE.remove(start).is_some());
            assert_eq!(TABLE.remove(start), None);
        } else if live.len() < 300 {
            assert!(TABLE.insert(start, block(size)));
            live.insert(start, size);
        }
        assert_eq!(TABLE.get(start).map(|block| block.requested), live.get(&start).copied());
    }
    for plane in [0, 8] {
        let mut found = Vec::new();
        TABLE
            .for_each(|start, block| found.extend((start % 16 == plane).then_some((start, block.requested))));
        let known: Vec<_> =
            live.iter().filter(|(start, _)| *start % 16 == plane).map(|(s, b)| (*s, *b)).collect();
        assert_eq!(found, known);
    }
    assert!(TABLE.touched() < 64 << 10, "{}", TABLE.touched());
}

/// Threads start and end their own blocks side by side: no block is lost, no ended block remains, and no thread gets a
/// block of another thread.
#[test]
fn threads_share_a_stretch_of_heap() {
    static TABLE: BlockTable = BlockTable::new();
    const THREADS: usize = 4;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let starts = || (thread..256).step_by(THREADS).map(|at| HEAP + at * 16);
                for round in 0..2000 {
                    for start in starts().filter(|start| start / 64 % 5 != round % 5) {
                        assert!(TABLE.insert(start, block(start % 4096 + round % 7)));
                    }
                    for start in starts().filter(|start| start / 64 % 5 != round % 5) {
                        assert_eq!(TABLE.mark(start), Some(true));
                        let marked = TableBlock { marked: true, ..block(start % 4096 + round % 7) };
                        assert_eq!(TABLE.remove(start), Some(marked));
                    }
                    assert!(starts().all(|start| TABLE.get(start).is_none()));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                let mut last = 0;
                TABLE.for_each(|start, block| {
                    assert!(last < start && block.requested < 4096 + 7);
                    assert_eq!(block.requested - start % 4096, block.requested % 16 % 7);
                    last = start;
                });
            }
        });
    });
    TABLE.for_each(|address, _| panic!("{address:#x}"));
}

/// A large block stays the same if blocks around it are small, no matter which of them was recorded first.
#[test]
fn large_blocks_among_small_ones() {
    static TABLE: BlockTable = BlockTable::new();
    let (large, second, small) = (HEAP + 16, HEAP + (40 << 10), HEAP + (20 << 10));
    let all = || {
        let mut all = Vec::new();
        TABLE.for_each(|address, block| all.push((address, block.requested)));
        all
    };
    assert!(TABLE.insert(second, block(5 << 30)));
    assert!(TABLE.insert(large, block(17 << 10)));
    assert_eq!(all(), [(large, 17 << 10), (second, 5 << 30)]);
    let before = TABLE.mapped();
    assert!(TABLE.insert(small, block(48)));
    assert!(TABLE.mapped() > before, "small blocks need lines");
    assert_eq!(all(), [(large, 17 << 10), (small, 48), (second, 5 << 30)]);
    assert_eq!(TABLE.find(second + 9), inside(second, 5 << 30));
    assert_eq!((TABLE.mark(large), TABLE.mark(large)), (Some(true), Some(false)));
    assert!(TABLE.get(large).unwrap().marked);
    TABLE.unmark(large);
    assert_eq!(TABLE.remove(large), Some(block(17 << 10)));
    assert_eq!((TABLE.remove(large), TABLE.find(large)), (None, FoundBlock::Freed));
    // A cell takes precedence over the slot.
    assert!(TABLE.insert(large, block(100)));
    TABLE.remove(second);
    assert_eq!(all(), [(large, 100), (small, 48)]);
    TABLE.clear();
    assert_eq!((all(), TABLE.find(large)), (Vec::new(), FoundBlock::Nothing));
}

/// A slot belongs to the same address forever: blocks without a free slot get cells.
#[test]
fn large_blocks_at_more_addresses_than_there_are_slots() {
    static TABLE: BlockTable = BlockTable::new();
    for start in (HEAP..HEAP + (1 << 17)).step_by(1 << 10) {
        assert!(TABLE.insert(start, block(1 << 20)));
        assert_eq!(TABLE.find(start + 1000), inside(start, 1 << 20));
        assert_eq!(TABLE.remove(start), Some(block(1 << 20)));
    }
    TABLE.for_each(|address, _| panic!("{address:#x}"));
}

/// The table needs little memory for large blocks, even if they have more than 32 GiB together.
#[test]
fn large_blocks_take_little_room() {
    static TABLE: BlockTable = BlockTable::new();
    let blocks = 40_000;
    for at in 0..blocks {
        assert!(TABLE.insert((1 << 44) + 16 + at * ((1 << 20) + 4096), block(1 << 20)));
    }
    let mut found = 0;
    TABLE.for_each(|_, block| found += usize::from(block.requested == 1 << 20));
    assert_eq!(found, blocks);
    assert!(TABLE.mapped() < 1000 * blocks, "{}", TABLE.mapped());
    assert!(TABLE.touched() < 200 * blocks, "{}", TABLE.touched());
}

/// A read of a large block returns one whole block, even if other threads free it and record another block there.
#[test]
fn a_large_block_is_read_as_one() {
    static TABLE: BlockTable = BlockTable::new();
    let wide = |requested, slop, trace| TableBlock { requested, slop, trace: TraceId(trace), ..block(0) };
    let blocks = [wide(5 << 20, 5000, 1), wide(7 << 20, 7000, 1), wide(9 << 20, 7000, 2), block(16)];
    let stop = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                assert!(TABLE.insert(HEAP, blocks[round % 4]));
                TABLE.remove(HEAP);
                for offset in [16, 32].into_iter().filter(|_| round % 3 == 0) {
                    assert!(TABLE.insert(HEAP + offset, block(16)));
                    TABLE.remove(HEAP + offset);
                }
                if stop.load(core::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut seen = 0;
        let strange = (0..3_000_000)
            .filter_map(|_| TABLE.get(HEAP))
            .inspect(|_| seen += 1)
            .find(|block| !blocks.contains(block));
        stop.store(true, core::sync::atomic::Ordering::Relaxed);
        assert_eq!(strange, None);
        assert!(seen > 0);
    });
}
