//! Compares the changes of each stack with a model that keeps every state.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn static_tables() -> (&'static Peak, &'static TraceTree) {
    (Box::leak(Box::new(Peak::new())), Box::leak(Box::new(TraceTree::new())))
}

/// The amount of each stack at the peak: `now` without the changes.
fn at_peak(peak: &Peak, tree: &TraceTree, now: &BTreeMap<u32, i64>) -> BTreeMap<u32, i64> {
    let mut then = now.clone();
    peak.for_each_since(peak.level(), tree, |trace, amount| {
        *then.entry(trace.0).or_default() -= amount.bytes;
    });
    then.retain(|_, bytes| *bytes != 0);
    then
}

#[test]
fn levels_are_near_each_other_and_few() {
    assert_eq!(HeapLevel::from_bytes(-1), HeapLevel(0));
    let mut sum = 0i64;
    while sum < 1 << 47 {
        let level = HeapLevel::from_bytes(sum);
        assert!(level.0 < 1 << 16);
        assert!(level.floor() <= sum && sum < level.floor() + level.step(), "{sum}");
        assert!(level.step() <= (sum >> 10).max(8 << 10), "{sum}");
        assert_eq!(HeapLevel::from_bytes(level.floor()), level);
        assert_eq!(HeapLevel::from_bytes(level.floor() + level.step()), HeapLevel(level.0 + 1));
        sum += sum / 777 + 4001;
    }
}

proptest! {
    /// One thread hands each event over at once: the state at the peak is the state after the first event of the
    /// highest level.
    #[test]
    fn a_thread_has_the_state_of_the_highest_level(
        events in prop::collection::vec((0usize..12, 1i64..300_000, any::<bool>()), 1..200)
    ) {
        let (peak, tree) = static_tables();
        let stacks: Vec<_> = (0..12).map(|pc| if pc == 0 { TraceId::NONE } else { tree.child(TraceId::NONE, 0x1_0000 + pc) }).collect();
        let mut now = BTreeMap::new();
        let (mut sum, mut highest, mut expected) = (0, HeapLevel(0), BTreeMap::new());
        for (stack, bytes, ends) in events {
            let trace = stacks[stack];
            let of_stack: &mut i64 = now.entry(trace.0).or_default();
            let by = if ends { -bytes.min(*of_stack) } else { bytes };
            *of_stack += by;
            sum += by;
            let amount = BlockAmount { blocks: by.signum(), bytes: by };
            peak.add(tree, trace, amount);
            if HeapLevel::from_bytes(sum) > highest {
                highest = HeapLevel::from_bytes(sum);
                expected = now.clone();
                expected.retain(|_, bytes| *bytes != 0);
            }
            prop_assert_eq!(peak.level(), highest);
            prop_assert_eq!(&at_peak(peak, tree, &now), &expected);
        }
    }
}

proptest! {
    /// A change is the sum of the amounts that were added since its level, however large, and includes no amount of an
    /// earlier level.
    #[test]
    fn a_change_is_the_sum_since_its_level(
        events in prop::collection::vec((0u32..44, any::<i64>(), 0u32..31, any::<i64>(), 0u64..40), 1..200)
    ) {
        let change = StackChange::new();
        let (mut level, mut expected) = (HeapLevel(7), BlockAmount::default());
        for (bytes_bits, bytes, blocks_bits, blocks, rises) in events {
            let cut = |number: i64, bits: u32| number >> (63 - bits);
            let by = BlockAmount { blocks: cut(blocks, blocks_bits), bytes: cut(bytes, bytes_bits) };
            if rises == 0 {
                (level, expected) = (HeapLevel(level.0 + 1), BlockAmount::default());
            }
            // The change already has this level, so it must ignore amounts of an earlier level.
            if expected != BlockAmount::default() {
                change.add(HeapLevel(level.0 - 1), by);
                CompactChange::pack(by).into_iter().for_each(|few| change.add_few(HeapLevel(level.0 - 1), few));
            }
            match CompactChange::pack(by) {
                Some(few) => change.add_few(level, few),
                None => change.add(level, by),
            }
            expected = expected.plus(by);
            prop_assert_eq!(change.since(level), expected);
            prop_assert_eq!(change.since(HeapLevel(level.0 + 1)), BlockAmount::default());
        }
    }
}

/// No amount is lost when threads carry from one word of a change to the other, in both directions.
#[test]
fn threads_carry_without_loss() {
    const ROUNDS: i64 = 40_000;
    let (change, level) = (StackChange::new(), HeapLevel(3));
    std::thread::scope(|scope| {
        for by in [BlockAmount { blocks: 90, bytes: 9 << 20 }, BlockAmount { blocks: -80, bytes: -(7 << 20) }]
        {
            let change = &change;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    match CompactChange::pack(by) {
                        Some(few) if round % 7 != 0 => change.add_few(level, few),
                        _ => change.add(level, by),
                    }
                }
            });
        }
    });
    assert_eq!(change.since(level), BlockAmount { blocks: 10 * ROUNDS, bytes: (2 << 20) * ROUNDS });
}

/// Threads that share stacks lose no update: after a peak, each thread frees blocks and allocates others.
#[test]
fn threads_lose_no_change() {
    let (peak, tree) = static_tables();
    let stacks: Vec<_> = (0..5).map(|pc| tree.child(TraceId::NONE, 0x2_0000 + pc)).collect();
    let amount = |bytes: i64| BlockAmount { blocks: bytes.signum(), bytes };
    stacks.iter().for_each(|trace| peak.add(tree, *trace, amount(1 << 30)));
    let level = peak.level();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let stacks = &stacks;
            scope.spawn(move || {
                for round in 0..20_000 {
                    let trace = stacks[(round + thread) % stacks.len()];
                    peak.add(tree, trace, amount(-100));
                    peak.add(tree, trace, amount(99));
                }
            });
        }
    });
    assert_eq!(peak.level(), level);
    let (mut bytes, mut blocks) = (0, 0);
    peak.for_each_since(level, tree, |_, amount| {
        bytes += amount.bytes;
        blocks += amount.blocks;
    });
    assert_eq!((bytes, blocks), (-80_000, 0));
}

/// A heap that only grows is not copied. After a copy, the next peak must be higher by a part of the copied peak.
#[test]
fn a_fall_from_a_high_peak_is_noticed_once() {
    let (peak, tree) = static_tables();
    let trace = tree.child(TraceId::NONE, 0x3_0000);
    let add = |kib: i64| {
        peak.add(tree, trace, BlockAmount { blocks: 0, bytes: kib << 10 });
        peak.fall.has_happened()
    };
    peak.fall.watch();
    assert!(!add(32) && !add(-32), "below the smallest peak");
    assert!((0..64).all(|_| !add(16)));
    assert!(!add(-3), "a small fall");
    assert!(add(-36));
    assert!(peak.fall.take(false), "the first copy");
    assert!(!peak.fall.take(true), "another thread makes the copy");
    assert!(!peak.fall.wants_end(0));
    peak.fall.copied(1 << 20);
    assert!(!add(60) && !add(-60), "the new peak is not high enough");
    assert!(peak.fall.wants_end((1 << 20) + 1));
    assert!(!add(200));
    assert!(peak.fall.wants_end(0), "the heap has not fallen");
    assert!(add(-80));
    assert!(!peak.fall.take(false), "copies are not cheap, and the new peak is not a quarter higher");
    assert!(!add(100) && add(-80));
    assert!(peak.fall.take(true), "copies are cheap again");
}
