//! Blocks of one thread that began or ended and that the peak does not count yet.
//!
//! Only the thread itself adds events, inside the engine. Other threads read them for a dump. An event is first one
//! word in a short list, so that `free` does not wait for the block's word in the table, which is rarely in a cache.
//! The thread settles the list when it is full, or when the sum of all pending events reaches the thread's share: when
//! another thread finds a peak, few bytes of this thread are missing. Settled events of one stack are one entry: most
//! blocks that end soon thus leave nothing to count. Where nearly every event has another stack, the thread hands the
//! list over as it is for a while.

use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use crate::system::clock;
use crate::tables::block_table::{BlockWord, TableBlock};
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::statistics::{BlockEnd, EventCounts, EventStatistics};
use crate::tables::trace_id::TraceId;

/// Most events of the list.
const RECENT: usize = 64;

/// Entries are in an open-addressed table. The thread hands them over when there are this many, and settles at most
/// a list before.
const MOST: usize = 128;
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
const _: () = assert!(MOST + RECENT < SLOTS);

/// Events come and go between two peaks: their bytes without signs may be this many times the share of their sum.
const GROSS_SHARES: usize = 4;

/// Most events that the thread settles before it hands them over, so that a number of blocks fits its entry.
const MOST_EVENTS: usize = 1 << 18;

/// Lists that a thread hands over as they are, before it looks again whether events have stacks in common.
const UNMERGED_LISTS: u32 = 15;

/// In an event: the block ended, and that was by a move.
const ENDED: u64 = BlockWord::SPARE_BITS[0];
const MOVED: u64 = BlockWord::SPARE_BITS[1];

/// Blocks and requested bytes; negative if more ended than began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockAmount {
    pub(crate) blocks: i64,
    pub(crate) bytes: i64,
}

/// Begins and ends of blocks of one stack. All zero if it is not in use.
struct StackEvents {
    /// The id of the stack plus 1.
    trace: AtomicU32,
    blocks: AtomicI32,
    bytes: AtomicI64,
}

/// Where and when an event of the list happened. All zero if that was before anybody observed.
struct EventMoment {
    address: AtomicUsize,
    tick: AtomicU64,
}

/// A part of the list, for observers.
pub(crate) struct EventList<'a> {
    events: &'a [AtomicU64],
    seen: &'a [EventMoment],
}

/// All zero at first.
pub(crate) struct PendingEvents {
    /// The address of the block that this thread allocated last.
    last: AtomicUsize,
    /// The sum of all events, in bytes.
    net: AtomicI64,
    /// The thread settles the list when `net` reaches this many bytes in either direction.
    share: AtomicUsize,
    length: AtomicUsize,
    /// Whether the thread keeps the address and the tick of each event of the list.
    observed: AtomicBool,
    recent: [AtomicU64; RECENT],
    seen: [EventMoment; RECENT],
    /// The events of the list that observers have. The thread changes it while it holds the lock of its lease.
    handed: AtomicUsize,
    slots: [StackEvents; SLOTS],
    /// The slots in use, as the first `entries` of these.
    used: [AtomicU8; SLOTS],
    entries: AtomicUsize,
    /// Bytes of all settled events, without their signs.
    gross: AtomicUsize,
    /// The number of settled events.
    events: AtomicUsize,
    /// Lists that the thread hands over as they are from here on.
    unmerged: AtomicU32,
    counts: EventCounts,
}

impl BlockAmount {
    /// One block.
    #[inline]
    pub(crate) fn from_block(block: TableBlock) -> Self {
        Self { blocks: 1, bytes: i64::try_from(block.requested).unwrap_or(i64::MAX) }
    }

    fn from_event(event: u64) -> Self {
        let amount = Self { blocks: 1, bytes: BlockWord::from_bits(event).requested() as i64 };
        if event & ENDED == 0 { amount } else { amount.negative() }
    }

    #[inline]
    pub(crate) fn plus(self, other: Self) -> Self {
        let Self { blocks, bytes } = other;
        Self { blocks: self.blocks.wrapping_add(blocks), bytes: self.bytes.wrapping_add(bytes) }
    }

    #[inline]
    pub(crate) fn negative(self) -> Self {
        Self { blocks: self.blocks.wrapping_neg(), bytes: self.bytes.wrapping_neg() }
    }
}

impl PendingEvents {
    /// A block of this thread begins. Returns whether the thread is to settle.
    #[inline(always)]
    pub(crate) fn begin(&self, address: usize, word: BlockWord) -> bool {
        self.last.store(address, Ordering::Relaxed);
        self.push(address, word.bits(), word.requested() as i64)
    }

    /// [`begin`](Self::begin) for any block. The thread is to settle. No other thread reads the events meanwhile.
    pub(crate) fn begin_other(&self, address: usize, trace: TraceId, amount: BlockAmount) {
        self.last.store(address, Ordering::Relaxed);
        self.counts.add(1, 0);
        self.push_other(trace, amount);
    }

    /// This thread ends a block. Returns whether it is to settle.
    #[inline(always)]
    pub(crate) fn end(&self, address: usize, word: BlockWord, end: BlockEnd) -> bool {
        self.end_last(address);
        let moved = if end == BlockEnd::Moved { MOVED } else { 0 };
        let full = self.push(address, word.bits() | ENDED | moved, -(word.requested() as i64));
        if end == BlockEnd::Moved {
            self.counts.add_move();
        }
        full
    }

    /// [`end`](Self::end) for any block. The thread is to settle. No other thread reads the events meanwhile.
    pub(crate) fn end_other(&self, address: usize, trace: TraceId, amount: BlockAmount, end: BlockEnd) {
        self.end_last(address);
        self.counts.add(0, 1);
        if end == BlockEnd::Moved {
            self.counts.add_move();
        }
        self.push_other(trace, amount.negative());
    }

    #[inline(always)]
    fn end_last(&self, address: usize) {
        if self.last.load(Ordering::Relaxed) == address {
            self.last.store(0, Ordering::Relaxed);
            self.counts.add_temporary();
        }
    }

    #[inline(always)]
    fn push(&self, address: usize, event: u64, bytes: i64) -> bool {
        let net = self.net.load(Ordering::Relaxed).wrapping_add(bytes);
        self.net.store(net, Ordering::Relaxed);
        let length = self.length.load(Ordering::Relaxed);
        // The list has room unless the jump of a signal handler kept the thread from settling.
        self.recent[length % RECENT].store(event, Ordering::Relaxed);
        if self.observed.load(Ordering::Relaxed) {
            let seen = &self.seen[length % RECENT];
            seen.address.store(address, Ordering::Relaxed);
            seen.tick.store(clock::ticks(), Ordering::Relaxed);
        }
        self.length.store(length + 1, Ordering::Release);
        length + 1 >= RECENT || net.unsigned_abs() as usize >= self.share.load(Ordering::Relaxed)
    }

    fn push_other(&self, trace: TraceId, amount: BlockAmount) {
        self.net.store(self.net.load(Ordering::Relaxed).wrapping_add(amount.bytes), Ordering::Relaxed);
        let gross = self.gross.load(Ordering::Relaxed).saturating_add(amount.bytes.unsigned_abs() as usize);
        self.gross.store(gross, Ordering::Relaxed);
        self.add(trace, amount);
    }

    /// Adds to the entry of a stack.
    #[inline]
    fn add(&self, trace: TraceId, amount: BlockAmount) {
        let key = trace.0 + 1;
        let mut at = (key.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOT_BITS)) as usize;
        for _ in 0..SLOTS {
            let slot = at % SLOTS;
            let entry = &self.slots[slot];
            match entry.trace.load(Ordering::Relaxed) {
                0 => return self.begin_entry(slot, key, amount),
                of if of == key => return entry.set(entry.amount().plus(amount)),
                _ => at += 1,
            }
        }
    }

    fn begin_entry(&self, slot: usize, key: u32, amount: BlockAmount) {
        let entries = self.entries.load(Ordering::Relaxed);
        if let Some(place) = self.used.get(entries) {
            place.store(slot as u8, Ordering::Relaxed);
            self.slots[slot].set(amount);
            self.entries.store(entries + 1, Ordering::Relaxed);
            self.slots[slot].trace.store(key, Ordering::Relaxed);
        }
    }

    /// Lets the thread settle at its next event.
    pub(crate) fn settle_soon(&self) {
        self.share.store(0, Ordering::Relaxed);
    }

    /// Settles the list. Sets the thread's share, in bytes, and returns whether the thread is to hand all over. Then the list
    /// may still be in place: the thread hands it over with the rest, and [`forget`](Self::forget) empties it. No other
    /// thread reads the events meanwhile.
    pub(crate) fn settle(&self, share: usize) -> bool {
        self.share.store(share, Ordering::Relaxed);
        let unmerged = self.unmerged.load(Ordering::Relaxed);
        if unmerged > 0 {
            self.unmerged.store(unmerged - 1, Ordering::Relaxed);
            return true;
        }
        let begun_and_ended = self.merge();
        self.empty_list(begun_and_ended);
        let gross = self.gross.load(Ordering::Relaxed);
        let events = self.events.load(Ordering::Relaxed);
        let full = self.net().unsigned_abs() as usize >= share
            || gross / GROSS_SHARES >= share
            || self.entries.load(Ordering::Relaxed) >= MOST
            || events >= MOST_EVENTS;
        if full && events >= RECENT {
            let left = self.settled().filter(|(_, amount)| *amount != BlockAmount::default()).count();
            if left > events / 4 * 3 {
                self.unmerged.store(UNMERGED_LISTS, Ordering::Relaxed);
            }
        }
        full
    }

    /// Adds the events of the list to the entries of their stacks. Returns how many blocks began, and how many ended.
    fn merge(&self) -> (u64, u64) {
        let (mut gross, mut ended) = (0, 0);
        let mut without_stack = BlockAmount::default();
        let recent = self.recent();
        let length = recent.len();
        for event in recent {
            let (trace, amount) = (BlockWord::from_bits(event).trace(), BlockAmount::from_event(event));
            gross += amount.bytes.unsigned_abs() as usize;
            ended += event & ENDED;
            if trace == TraceId::NONE {
                without_stack = without_stack.plus(amount);
            } else {
                self.add(trace, amount);
            }
        }
        if without_stack != BlockAmount::default() {
            self.add(TraceId::NONE, without_stack);
        }
        self.gross.store(self.gross.load(Ordering::Relaxed).saturating_add(gross), Ordering::Relaxed);
        self.events.store(self.events.load(Ordering::Relaxed) + length, Ordering::Relaxed);
        let ended = ended / ENDED;
        (length as u64 - ended, ended)
    }

    fn empty_list(&self, (begun, ended): (u64, u64)) {
        self.counts.add(begun, ended);
        self.length.store(0, Ordering::Relaxed);
        self.handed.store(0, Ordering::Relaxed);
    }

    /// How many blocks began in the list, and how many ended.
    fn begun_and_ended(&self) -> (u64, u64) {
        let ended = self.recent().filter(|event| event & ENDED != 0).count();
        ((self.recent().len() - ended) as u64, ended as u64)
    }

    /// Begins or ends to keep addresses and ticks. The caller holds the lock of the lease.
    pub(crate) fn set_observed(&self, observed: bool) {
        if observed && !self.is_observed() {
            for seen in &self.seen {
                seen.address.store(0, Ordering::Relaxed);
            }
            self.skip_list();
        }
        self.observed.store(observed, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Relaxed)
    }

    /// Takes the list for one that observers have. The caller holds the lock of the lease.
    pub(crate) fn skip_list(&self) {
        self.handed.store(self.length.load(Ordering::Acquire), Ordering::Relaxed);
    }

    /// The events of the list that observers do not have, and which they have from now on. The caller holds the lock
    /// of the lease.
    pub(crate) fn take_list(&self) -> Option<EventList<'_>> {
        let length = self.length.load(Ordering::Acquire).min(RECENT);
        let handed = self.handed.load(Ordering::Relaxed);
        self.handed.store(length, Ordering::Relaxed);
        let events = self.recent.get(handed..length).filter(|events| !events.is_empty())?;
        Some(EventList { events, seen: self.seen.get(handed..length)? })
    }

    /// The events of the list.
    fn recent(&self) -> impl ExactSizeIterator<Item = u64> + Clone {
        let length = self.length.load(Ordering::Acquire).min(RECENT);
        self.recent[..length].iter().map(|event| event.load(Ordering::Relaxed))
    }

    /// What began and ended of each stack, without the list.
    #[inline]
    pub(crate) fn settled(&self) -> impl Iterator<Item = (TraceId, BlockAmount)> + Clone {
        let entries = self.entries.load(Ordering::Relaxed).min(SLOTS);
        self.used[..entries].iter().filter_map(|slot| {
            let entry = &self.slots[usize::from(slot.load(Ordering::Relaxed))];
            let trace = entry.trace.load(Ordering::Relaxed).checked_sub(1)?;
            Some((TraceId(trace), entry.amount()))
        })
    }

    /// What began and ended in the list. A stack may come several times.
    #[inline]
    pub(crate) fn listed(&self) -> impl Iterator<Item = (TraceId, BlockAmount)> {
        self.recent().map(|event| (BlockWord::from_bits(event).trace(), BlockAmount::from_event(event)))
    }

    /// What began and ended. A stack may come several times.
    pub(crate) fn events(&self) -> impl Iterator<Item = (TraceId, BlockAmount)> {
        self.settled().chain(self.listed())
    }

    /// The sum of all events, in bytes.
    pub(crate) fn net(&self) -> i64 {
        self.net.load(Ordering::Relaxed)
    }

    /// Adds how often blocks of this thread ever began and ended.
    pub(crate) fn add_to(&self, statistics: &mut EventStatistics) {
        statistics.add(&self.counts);
        let (begun, ended) = self.begun_and_ended();
        statistics.add_events(begun, ended);
    }

    /// Forgets the events, also those of the list.
    pub(crate) fn forget(&self) {
        let entries = self.entries.load(Ordering::Relaxed).min(SLOTS);
        for slot in &self.used[..entries] {
            let entry = &self.slots[usize::from(slot.load(Ordering::Relaxed))];
            entry.trace.store(0, Ordering::Relaxed);
            entry.set(BlockAmount::default());
        }
        self.entries.store(0, Ordering::Relaxed);
        self.empty_list(self.begun_and_ended());
        self.events.store(0, Ordering::Relaxed);
        self.net.store(0, Ordering::Relaxed);
        self.gross.store(0, Ordering::Relaxed);
    }

    /// For tests: forgets all that there ever was.
    pub(crate) fn clear(&self) {
        self.forget();
        self.unmerged.store(0, Ordering::Relaxed);
        self.counts.clear();
    }
}

impl EventList<'_> {
    /// The number of events.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Calls `each` for the events, without those from before anybody observed.
    #[inline(always)]
    pub(crate) fn for_each(&self, mut each: impl FnMut(TableEvent)) {
        for (event, seen) in self.events.iter().zip(self.seen) {
            let (event, address) = (event.load(Ordering::Relaxed), seen.address.load(Ordering::Relaxed));
            if address == 0 {
                continue;
            }
            let happened = match (event & ENDED, event & MOVED) {
                (0, _) => EventKind::Began,
                (_, 0) => EventKind::Ended(BlockEnd::Freed),
                _ => EventKind::Ended(BlockEnd::Moved),
            };
            let block = BlockWord::from_bits(event).block();
            each(TableEvent { tick: seen.tick.load(Ordering::Relaxed), address, happened, block });
        }
    }
}

impl StackEvents {
    fn amount(&self) -> BlockAmount {
        BlockAmount {
            blocks: self.blocks.load(Ordering::Relaxed).into(),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn set(&self, amount: BlockAmount) {
        self.blocks.store(amount.blocks as i32, Ordering::Relaxed);
        self.bytes.store(amount.bytes, Ordering::Relaxed);
    }
}
