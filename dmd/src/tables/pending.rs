//! Starts and ends of blocks of one thread that the peak does not count yet.
//!
//! Only the thread itself adds events, inside the engine's guard. Other threads read the events for a dump. A new
//! event is one word in a short list, so that `free` does not wait for the block's word in the table, which is rarely
//! in a cache. The thread settles the list when it is full, or when the sum of all pending events reaches the thread's
//! share. So when another thread finds a peak, only few bytes of this thread are missing. Settling merges the events
//! of one stack into one entry: most blocks end soon, so they leave nothing to count. If nearly every event has a
//! different stack, the thread hands several lists over without merging.

use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use crate::system::clock;
use crate::tables::block_table::{BlockWord, TableBlock};
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::statistics::{BlockEnd, EventCounts, EventStatistics};
use crate::tables::trace_id::TraceId;

/// The maximum number of events in the list.
const RECENT: usize = 64;

/// When the open-addressed table has at least this many entries, the thread hands them over. The thread checks this
/// after it has merged a list, so the table may exceed this number by the length of a list.
const MOST: usize = 128;
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
const _: () = assert!(MOST + RECENT < SLOTS);

/// Many starts and ends between two peaks cancel out: the sum of their bytes without signs may be this many times the
/// thread's share.
const GROSS_SHARES: usize = 4;

/// The maximum number of events that the thread settles before it hands them over, so that a number of blocks fits
/// into its entry.
const MOST_EVENTS: usize = 1 << 18;

/// The number of lists that a thread hands over without merging. After that, it checks again whether events have
/// common stacks.
const UNMERGED_LISTS: u32 = 15;

/// The flag in the word of an event: the block has ended.
const ENDED: u64 = BlockWord::SPARE_BITS[0];
const MOVED: u64 = BlockWord::SPARE_BITS[1];

/// A number of blocks and of usable bytes; negative if more blocks ended than started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockAmount {
    pub(crate) blocks: i64,
    pub(crate) bytes: i64,
}

/// The starts and ends of blocks of one stack. All zero if the entry is not in use.
struct StackEvents {
    /// The id of the stack plus 1.
    trace: AtomicU32,
    blocks: AtomicI32,
    bytes: AtomicI64,
}

/// The address of the block and the time of an event in the list. The address is 0 if no observer was on at that time.
struct EventMoment {
    address: AtomicUsize,
    tick: AtomicU64,
}

/// A part of the list, for observers.
pub(crate) struct EventList<'a> {
    events: &'a [AtomicU64],
    seen: &'a [EventMoment],
}

/// The pending events of one thread. All zero at first.
pub(crate) struct PendingEvents {
    /// The address of the last block that this thread allocated; 0 after the end of that block.
    last: AtomicUsize,
    /// The sum of all events, in bytes.
    net: AtomicI64,
    /// The thread settles the list when `net` reaches this many bytes in either direction.
    share: AtomicUsize,
    length: AtomicUsize,
    /// Whether an observer is on, so that the thread keeps the address and the tick of each event in the list.
    observed: AtomicBool,
    recent: [AtomicU64; RECENT],
    seen: [EventMoment; RECENT],
    /// The number of events in the list that observers have received. A thread changes it only while it holds the lock
    /// of the lease.
    handed: AtomicUsize,
    slots: [StackEvents; SLOTS],
    /// The numbers of the slots in use. The first `entries` elements are valid.
    used: [AtomicU8; SLOTS],
    entries: AtomicUsize,
    /// The sum of the bytes of all settled events, without signs.
    gross: AtomicUsize,
    /// The number of settled events.
    events: AtomicUsize,
    /// The number of lists that the thread will still hand over without merging.
    unmerged: AtomicU32,
    counts: EventCounts,
}

impl BlockAmount {
    /// The amount of one block.
    #[inline]
    pub(crate) fn from_block(block: TableBlock) -> Self {
        Self { blocks: 1, bytes: i64::try_from(block.usable()).unwrap_or(i64::MAX) }
    }

    fn from_event(event: u64) -> Self {
        let amount = Self { blocks: 1, bytes: BlockWord::from_bits(event).usable() as i64 };
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
    /// Adds the start of a block on this thread. Returns whether the thread must settle.
    #[inline(always)]
    pub(crate) fn begin(&self, address: usize, word: BlockWord) -> bool {
        self.last.store(address, Ordering::Relaxed);
        self.push(address, word.bits(), word.usable() as i64)
    }

    /// Like [`begin`](Self::begin), for any block. The thread must settle afterwards. No other thread may read the
    /// events during the call.
    pub(crate) fn begin_other(&self, address: usize, trace: TraceId, amount: BlockAmount) {
        self.last.store(address, Ordering::Relaxed);
        self.counts.add(1, 0);
        self.push_other(trace, amount);
    }

    /// Adds the end of a block on this thread. Returns whether the thread must settle.
    #[inline(always)]
    pub(crate) fn end(&self, address: usize, word: BlockWord, end: BlockEnd) -> bool {
        self.end_last(address);
        let moved = if end == BlockEnd::Moved { MOVED } else { 0 };
        let full = self.push(address, word.bits() | ENDED | moved, -(word.usable() as i64));
        if end == BlockEnd::Moved {
            self.counts.add_move();
        }
        full
    }

    /// Like [`end`](Self::end), for any block. The thread must settle afterwards. No other thread may read the events
    /// during the call.
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
        // The list has room, unless the jump of a signal handler prevented the thread from settling.
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

    /// Settles the list and sets the thread's share, in bytes. Returns whether the thread must hand all events over.
    /// In this case the list may not be empty: the thread hands it over with the entries, and then
    /// [`forget`](Self::forget) empties it. No other thread may read the events during the call.
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

    /// Adds the events of the list to the entries of their stacks. Returns the number of blocks that started, and the
    /// number that ended.
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

    /// The number of blocks in the list that started, and the number that ended.
    fn begun_and_ended(&self) -> (u64, u64) {
        let ended = self.recent().filter(|event| event & ENDED != 0).count();
        ((self.recent().len() - ended) as u64, ended as u64)
    }

    /// Starts or stops keeping addresses and ticks. The caller holds the lock of the lease.
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

    /// Marks all events of the list as received by observers. The caller holds the lock of the lease.
    pub(crate) fn skip_list(&self) {
        self.handed.store(self.length.load(Ordering::Acquire), Ordering::Relaxed);
    }

    /// Takes the events of the list that observers have not received, and marks them as received. The caller holds the
    /// lock of the lease.
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

    /// The amount of each stack whose blocks started or ended, without the events of the list.
    #[inline]
    pub(crate) fn settled(&self) -> impl Iterator<Item = (TraceId, BlockAmount)> + Clone {
        let entries = self.entries.load(Ordering::Relaxed).min(SLOTS);
        self.used[..entries].iter().filter_map(|slot| {
            let entry = &self.slots[usize::from(slot.load(Ordering::Relaxed))];
            let trace = entry.trace.load(Ordering::Relaxed).checked_sub(1)?;
            Some((TraceId(trace), entry.amount()))
        })
    }

    /// The amounts of the events in the list. A stack may occur several times.
    #[inline]
    pub(crate) fn listed(&self) -> impl Iterator<Item = (TraceId, BlockAmount)> {
        self.recent().map(|event| (BlockWord::from_bits(event).trace(), BlockAmount::from_event(event)))
    }

    /// The amounts of all events. A stack may occur several times.
    pub(crate) fn events(&self) -> impl Iterator<Item = (TraceId, BlockAmount)> {
        self.settled().chain(self.listed())
    }

    /// The sum of all events, in bytes.
    pub(crate) fn net(&self) -> i64 {
        self.net.load(Ordering::Relaxed)
    }

    /// Adds the number of starts and ends of all blocks of this thread so far.
    pub(crate) fn add_to(&self, statistics: &mut EventStatistics) {
        statistics.add(&self.counts);
        let (begun, ended) = self.begun_and_ended();
        statistics.add_events(begun, ended);
    }

    /// Forgets all events, including the events of the list.
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

    /// Forgets all events and counts, for tests and between sessions of tracking.
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

    /// Calls `each` for the events, except events from before an observer was on.
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
