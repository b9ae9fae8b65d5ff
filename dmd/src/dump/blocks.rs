//! Merges equal blocks.

use core::hash::BuildHasher as _;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

use super::at_peak::LiveStacks;
use super::resident::{AbsentBytes, MemoryJoin};
use crate::engine::ENGINE;
use crate::options::Mode;
use crate::system::pages::{self, DumpVec, PageAllocator};
use crate::tables::block_table::TableBlock;
use crate::tables::dead_blocks::DeadKind;
use crate::tables::mark::BlockReports;
use crate::tables::trace_id::TraceId;

/// The values of a block by which a dump merges blocks: blocks with the same values are one entry of the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockKind {
    pub(super) requested: usize,
    pub(super) slop: usize,
    pub(super) trace: TraceId,
    pub(super) sampled: bool,
    pub(super) reports: BlockReports,
}

impl BlockKind {
    pub(super) fn from_block(block: TableBlock) -> Self {
        let TableBlock { requested, slop, trace, sampled, .. } = ENGINE.counted(block);
        Self { requested, slop, trace, sampled, reports: BlockReports::default() }
    }

    pub(super) fn from_dead(dead: DeadKind) -> Self {
        let DeadKind { requested, slop, trace, sampled } = dead;
        Self { requested, slop, trace, sampled, reports: BlockReports::default() }
    }
}

/// The maximum number of kinds for which the list reserves room in advance: 72 MiB of addresses. The maximum leaves
/// room for stacks of threads in a process whose address space is limited.
const MOST_RESERVED: u64 = 1 << 20;

/// The blocks of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindAmount {
    pub(super) count: u64,
    /// The bytes of live blocks that are not in memory. All zero if the pages are not known.
    pub(super) absent: AbsentBytes,
}

impl KindAmount {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.absent.add(other.absent);
    }
}

/// The data that a dump collects while it looks at all live blocks.
pub(super) struct LiveTotals {
    pub(super) stacks: LiveStacks,
    /// The memory of the process; `None` if it is not known, or if the options do not ask for it.
    pub(super) memory: Option<MemoryJoin>,
}

/// Calls `each` for every live block, and adds it to `totals`. In cumulative mode, then calls `each` for every kind of
/// freed block, while a lock of the freed blocks is held.
pub(super) fn for_each(mode: Mode, totals: &mut LiveTotals, mut each: impl FnMut(BlockKind, KindAmount)) {
    totals.stacks = LiveStacks::new();
    if let Some(memory) = &mut totals.memory {
        memory.restart();
    }
    ENGINE.table().for_each(|address, block| {
        totals.stacks.add(block.trace, ENGINE.amount(block));
        let absent = totals.memory.as_mut().map(|memory| memory.add(address, block)).unwrap_or_default();
        let mut kind = BlockKind::from_block(block);
        if block.marked {
            kind.reports = ENGINE.marks.get(address);
        }
        each(kind, KindAmount { count: 1, absent });
    });
    if mode == Mode::Cumulative {
        let absent = AbsentBytes::default();
        ENGINE.dead.for_each(|dead, count| each(BlockKind::from_dead(dead), KindAmount { count, absent }));
    }
}

/// Kinds in order of their first block, with their counts.
pub(super) struct LiveBlocks {
    places: HashTable<KindPlace, PageAllocator<true>>,
    list: DumpVec<(BlockKind, KindAmount)>,
}

/// The index of a kind in the list. The table does not contain the kinds themselves, since a program may have as many
/// kinds as blocks.
#[derive(Clone, Copy)]
struct KindPlace {
    hash: u32,
    at: u32,
}

impl KindPlace {
    /// Spreads the hash over 64 bits: the table uses some bits from the top and others from the bottom.
    fn hash(&self) -> u64 {
        u64::from(self.hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl LiveBlocks {
    fn new() -> Self {
        let mut list = pages::list();
        // Reserve room, since a list copies its kinds when it grows. The reserved pages take memory only when they are
        // used. If the reservation fails, the list works without it.
        let statistics = ENGINE.statistics();
        let live = statistics.allocations.saturating_sub(statistics.frees);
        let _ = list.try_reserve(live.min(MOST_RESERVED) as usize);
        Self { places: HashTable::new_in(PageAllocator), list }
    }

    /// Merges all blocks by kind. Returns `None` if there is not enough memory for the kinds.
    pub(super) fn merged(mode: Mode, totals: &mut LiveTotals) -> Option<Self> {
        let mut live = Self::new();
        let mut fits = true;
        for_each(mode, totals, |kind, amount| fits = fits && live.add(kind, amount));
        fits.then_some(live)
    }

    /// Adds blocks of a kind. Returns false if there is no memory.
    fn add(&mut self, kind: BlockKind, amount: KindAmount) -> bool {
        let Self { places, list } = self;
        let hash = (FxBuildHasher.hash_one(kind) >> 32) as u32;
        let place = KindPlace { hash, at: list.len() as u32 };
        if places.try_reserve(1, KindPlace::hash).is_err() {
            return false;
        }
        let is_it = |place: &KindPlace| place.hash == hash && list[place.at as usize].0 == kind;
        match places.entry(place.hash(), is_it, KindPlace::hash) {
            Entry::Occupied(known) => {
                list[known.get().at as usize].1.add(amount);
                true
            }
            Entry::Vacant(vacant) => {
                let has_room = pages::push(list, (kind, amount));
                if has_room {
                    vacant.insert(place);
                }
                has_room
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(BlockKind, KindAmount)> {
        self.list.iter()
    }
}
