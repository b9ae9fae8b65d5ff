//! The figures of tags: allocations, frees, live bytes and the peak, counted exactly in the hooks.
//!
//! Each tag number has a record. A number whose record does not count costs one load. An event counts in the *chain* of
//! a number: its record, the chain of the number in `also`, and the chain of the number in `parent`. What code does
//! (allocations, reallocations, bytes) counts in the chain of the thread's current tag. What happens to a block (its
//! free, the change of its size) counts in the chain of the block's own tag, on any thread.
//!
//! A record has two tallies. The thread in `owner` is the only writer of `own`, so it counts with loads and stores.
//! All other threads add to `shared`. A sum of both is exact if no event runs at the same time. If a second thread
//! enters a tag while the first still owns the record, no thread owns it any more. Then every event adds to `shared`,
//! so that the peak stays exact.
//!
//! These functions run inside allocations: they do not allocate through the hook, hold a lock or panic.

use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use super::kept_pages::{KeptPages, ZeroValid};
use super::sites::SiteTable;
use super::{NO_TAG, TagNumber};

/// A figure of a tally.
#[derive(Clone, Copy)]
enum TallyFigure {
    Allocations,
    Reallocations,
    /// The bytes of allocations, and the new sizes of reallocations.
    Requested,
    Usable,
    /// The blocks without a tag that got this tag when they grew.
    Adopted,
    Frees,
    /// The requested bytes of live blocks.
    Live,
    /// The change of the sizes of other tags' blocks by code under this tag.
    Outside,
}

const FIGURES: usize = 8;

/// Figures modulo 2^64: a tally may be negative, since one thread frees blocks of another.
struct Tally([AtomicU64; FIGURES]);

impl Tally {
    fn get(&self, figure: TallyFigure) -> u64 {
        self.0[figure as usize].load(Ordering::Relaxed)
    }
}

/// The figures of one tag number, and its place among the other numbers.
#[repr(align(64))]
pub(crate) struct TagRecord {
    own: Tally,
    shared: Tally,
    /// The owner's thread; 0 for no thread, or [`SHARED`].
    owner: AtomicUsize,
    own_peak: AtomicU64,
    shared_peak: AtomicU64,
    /// The blocks that got no tag, because the system had no memory for the table.
    lost: AtomicU64,
    /// An allocation sets `crossed` if the live bytes reach this number; 0 for no limit.
    limit: AtomicU64,
    /// The largest number of live bytes above the limit; 0 if the limit was not crossed.
    crossed: AtomicU64,
    sites: KeptPages<SiteTable>,
    /// 1 if the record counts.
    counts: AtomicU8,
    /// 1 if a thread could not enter the tag.
    missed: AtomicU8,
    parent: AtomicU16,
    also: AtomicU16,
    /// The tag of a path to which the blocks of this number belong; `NO_TAG` for none.
    path: AtomicU16,
    /// For the tag of a path: the number under which new blocks count; `NO_TAG` if the path does not count.
    counted_as: AtomicU16,
}

/// Several threads have used the tag at the same time.
const SHARED: usize = 1;

const RECORDS: usize = 1 << TagNumber::BITS;

/// The records of all tag numbers.
struct Records([TagRecord; RECORDS]);

#[allow(unsafe_code, reason = "promises that zeroed memory is valid")]
// SAFETY: all fields are atomic integers and pointers, and arrays of them.
unsafe impl ZeroValid for Records {}

/// The system provides memory only for the records that are used.
static TABLE: KeptPages<Records> = KeptPages::none();

/// The figures of a tag number at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawFigures {
    pub(crate) allocations: u64,
    pub(crate) reallocations: u64,
    pub(crate) requested: u64,
    pub(crate) usable: u64,
    pub(crate) frees: u64,
    pub(crate) live_blocks: u64,
    pub(crate) live: u64,
    pub(crate) peak: u64,
    pub(crate) net: i64,
    pub(crate) lost: u64,
}

/// The relations of a tag number to other numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TagLinks {
    pub(crate) parent: TagNumber,
    pub(crate) also: TagNumber,
    pub(crate) path: TagNumber,
}

/// The record of a number; `None` if no tag has ever counted.
#[inline]
pub(crate) fn record(number: TagNumber) -> Option<&'static TagRecord> {
    Some(&TABLE.get()?.0[usize::from(number)])
}

/// The record of a number. `None` if the system has no memory for the records.
pub(crate) fn record_or_new(number: TagNumber) -> Option<&'static TagRecord> {
    let records = TABLE.get().or_else(|| Some(TABLE.get_or_map()?.0))?;
    Some(&records.0[usize::from(number)])
}

/// Makes a number count, from zero. No block has the number, and no thread uses it.
pub(crate) fn start(number: TagNumber, links: TagLinks) -> bool {
    let Some(record) = record_or_new(number) else { return false };
    for cell in record.own.0.iter().chain(&record.shared.0) {
        cell.store(0, Ordering::Relaxed);
    }
    record.owner.store(0, Ordering::Relaxed);
    for cell in [&record.own_peak, &record.shared_peak, &record.lost, &record.limit, &record.crossed] {
        cell.store(0, Ordering::Relaxed);
    }
    record.missed.store(0, Ordering::Relaxed);
    record.parent.store(links.parent, Ordering::Relaxed);
    record.also.store(links.also, Ordering::Relaxed);
    record.path.store(links.path, Ordering::Relaxed);
    record.counted_as.store(NO_TAG, Ordering::Relaxed);
    record.counts.store(1, Ordering::Release);
    true
}

/// The tag of a path to which blocks of a number belong: the number itself, unless it has a record with another one.
pub(crate) fn path_of(number: TagNumber) -> TagNumber {
    match record(number) {
        Some(record) if record.counts.load(Ordering::Acquire) != 0 => record.path.load(Ordering::Relaxed),
        _ => number,
    }
}

impl fmt::Debug for TagRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures().fmt(f)
    }
}

impl TagRecord {
    #[inline]
    fn is_own(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == super::thread()
    }

    /// Adds to a figure. Returns the sum of the figure directly after this event.
    #[inline]
    fn add(&self, is_own: bool, figure: TallyFigure, amount: u64) -> u64 {
        let (own, shared) = (&self.own.0[figure as usize], &self.shared.0[figure as usize]);
        if is_own {
            let changed = own.load(Ordering::Relaxed).wrapping_add(amount);
            own.store(changed, Ordering::Relaxed);
            changed.wrapping_add(shared.load(Ordering::Relaxed))
        } else {
            // A number is free for new use when all its blocks are counted as freed: see `live_blocks`.
            let before = shared.fetch_add(amount, Ordering::Release);
            before.wrapping_add(amount).wrapping_add(own.load(Ordering::Relaxed))
        }
    }

    /// Changes the live bytes, and raises the peak.
    #[inline]
    fn change_live(&self, is_own: bool, change: u64) {
        let live = self.add(is_own, TallyFigure::Live, change);
        let peak = if is_own { &self.own_peak } else { &self.shared_peak };
        if live as i64 > peak.load(Ordering::Relaxed) as i64 {
            if is_own {
                peak.store(live, Ordering::Relaxed);
            } else {
                peak.fetch_max(live, Ordering::Relaxed);
            }
        }
        let limit = self.limit.load(Ordering::Relaxed);
        if limit != 0 && live as i64 >= limit as i64 {
            self.cross(live);
        }
    }

    #[inline]
    fn sum(&self, figure: TallyFigure) -> u64 {
        self.own.get(figure).wrapping_add(self.shared.get(figure))
    }

    #[cold]
    fn cross(&self, live: u64) {
        if self.crossed.load(Ordering::Relaxed) < live && self.crossed.fetch_max(live, Ordering::AcqRel) == 0
        {
            super::crossing::notify();
        }
    }

    /// The blocks with this number. A result of 0 is final if no thread can use the number for new blocks.
    pub(crate) fn live_blocks(&self) -> u64 {
        let freed = self
            .own
            .get(TallyFigure::Frees)
            .wrapping_add(self.shared.0[TallyFigure::Frees as usize].load(Ordering::Acquire));
        self.sum(TallyFigure::Allocations).wrapping_add(self.sum(TallyFigure::Adopted)).wrapping_sub(freed)
    }

    pub(crate) fn figures(&self) -> RawFigures {
        let live = self.sum(TallyFigure::Live);
        // One tally may be older than the other, so a sum may be negative for a moment.
        let not_negative = |figure: u64| if figure as i64 > 0 { figure } else { 0 };
        let peak = self.own_peak.load(Ordering::Relaxed).max(self.shared_peak.load(Ordering::Relaxed));
        RawFigures {
            allocations: self.sum(TallyFigure::Allocations),
            reallocations: self.sum(TallyFigure::Reallocations),
            requested: self.sum(TallyFigure::Requested),
            usable: self.sum(TallyFigure::Usable),
            frees: self.sum(TallyFigure::Frees),
            live_blocks: not_negative(self.live_blocks()),
            live: not_negative(live),
            peak,
            net: live.wrapping_add(self.sum(TallyFigure::Outside)) as i64,
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn is_counting(&self) -> bool {
        self.counts.load(Ordering::Acquire) != 0
    }

    /// A thread cannot enter the tag, so the figures are incomplete.
    pub(crate) fn miss(&self) {
        self.missed.store(1, Ordering::Relaxed);
    }

    pub(crate) fn has_missed(&self) -> bool {
        self.missed.load(Ordering::Relaxed) != 0
    }

    /// This thread counts under the tag from now on. Returns whether it became the owner of the record.
    pub(crate) fn claim(&self) -> bool {
        match self.owner.compare_exchange(0, super::thread(), Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(owner) => {
                if owner != SHARED && owner != super::thread() {
                    self.owner.store(SHARED, Ordering::Relaxed);
                }
                false
            }
        }
    }

    /// The thread that claimed the record does not count under the tag any more.
    pub(crate) fn release(&self) {
        if self.is_own() {
            self.owner.store(0, Ordering::Release);
        }
    }

    /// The number under which new blocks of this path count.
    #[inline]
    pub(crate) fn counted_as(&self) -> TagNumber {
        self.counted_as.load(Ordering::Acquire)
    }

    pub(crate) fn count_as(&self, number: TagNumber) {
        self.counted_as.store(number, Ordering::Release);
    }

    /// Sets the limit that the live bytes must not exceed.
    pub(crate) fn set_limit(&self, bytes: Option<u64>) {
        let first_above = bytes.map_or(0, |bytes| bytes.saturating_add(1).min(i64::MAX as u64));
        self.limit.store(first_above, Ordering::Release);
    }

    /// The largest number of live bytes above the limit since the last call; 0 if the limit was not crossed.
    pub(crate) fn take_crossed(&self) -> u64 {
        self.crossed.swap(0, Ordering::AcqRel)
    }

    /// Counts the stacks of new blocks. Without memory, the record stays without stacks.
    pub(crate) fn count_sites(&self) {
        let _ = self.sites.get_or_map();
    }

    /// The stacks of the blocks that were allocated under the tag.
    pub(crate) fn sites(&self) -> Option<&SiteTable> {
        self.sites.get()
    }

    /// Returns the memory of the stacks to the system. No thread counts under the tag.
    #[allow(unsafe_code, reason = "returns pages")]
    pub(crate) fn drop_sites(&self) {
        // SAFETY: only code under the tag uses the table, and the caller ensures that no code runs under it.
        unsafe { self.sites.return_to_system() };
    }
}

/// Calls `each` with the records of a chain. `each` may free the number for new use, so the links are read before.
#[inline]
fn for_chain(records: &'static Records, number: TagNumber, each: &mut impl FnMut(&'static TagRecord)) {
    let record = &records.0[usize::from(number)];
    let (also, parent) = (record.also.load(Ordering::Relaxed), record.parent.load(Ordering::Relaxed));
    each(record);
    if also | parent != NO_TAG {
        for_rest(records, also, parent, each);
    }
}

fn for_rest(
    records: &'static Records,
    also: TagNumber,
    mut number: TagNumber,
    each: &mut impl FnMut(&'static TagRecord),
) {
    if also != NO_TAG {
        for_chain(records, also, each);
    }
    while number != NO_TAG {
        let record = &records.0[usize::from(number)];
        let (also, parent) = (record.also.load(Ordering::Relaxed), record.parent.load(Ordering::Relaxed));
        each(record);
        if also != NO_TAG {
            for_rest(records, also, NO_TAG, each);
        }
        number = parent;
    }
}

fn contains(records: &'static Records, number: TagNumber, wanted: &TagRecord) -> bool {
    let mut found = false;
    if number != NO_TAG && counts(records, number) {
        for_chain(records, number, &mut |record| found |= core::ptr::eq(record, wanted));
    }
    found
}

/// Whether blocks of `number` count in `wanted`.
pub(crate) fn is_in_chain(number: TagNumber, wanted: TagNumber) -> bool {
    TABLE.get().is_some_and(|records| contains(records, number, &records.0[usize::from(wanted)]))
}

/// The table of records, if this number counts.
#[inline]
fn counting(number: TagNumber) -> Option<&'static Records> {
    TABLE.get().filter(|records| number != NO_TAG && counts(records, number))
}

#[inline]
fn counts(records: &Records, number: TagNumber) -> bool {
    records.0[usize::from(number)].counts.load(Ordering::Relaxed) != 0
}

/// Counts a new block of a tag.
#[inline]
pub(super) fn allocated(tag: TagNumber, block: *const u8, requested: usize, usable: usize) {
    if let Some(records) = counting(tag) {
        for_chain(records, tag, &mut |record| {
            let is_own = record.is_own();
            record.add(is_own, TallyFigure::Allocations, 1);
            record.add(is_own, TallyFigure::Requested, requested as u64);
            record.add(is_own, TallyFigure::Usable, usable as u64);
            record.change_live(is_own, requested as u64);
            if let Some(sites) = record.sites.get() {
                sites.add(block, requested);
            }
        });
    }
}

/// Counts a block that code under a tag allocated, and that has no tag: the system had no memory for the table.
#[cold]
pub(super) fn lost(tag: TagNumber) {
    if let Some(records) = counting(tag) {
        for_chain(records, tag, &mut |record| {
            record.lost.fetch_add(1, Ordering::Relaxed);
        });
    }
}

/// Counts the end of a block of the tag `tag`, freed by code under the tag `acting`.
#[inline]
pub(super) fn freed(tag: TagNumber, acting: TagNumber, requested: usize) {
    if acting != tag {
        change_outside(tag, acting, (requested as u64).wrapping_neg());
    }
    if let Some(records) = counting(tag) {
        for_chain(records, tag, &mut |record| {
            let is_own = record.is_own();
            record.add(is_own, TallyFigure::Live, (requested as u64).wrapping_neg());
            record.add(is_own, TallyFigure::Frees, 1);
        });
    }
}

/// Code under the tag `acting` changes the size of a block of another tag.
#[cold]
fn change_outside(tag: TagNumber, acting: TagNumber, change: u64) {
    if let Some(records) = counting(acting) {
        for_chain(records, acting, &mut |record| {
            if !contains(records, tag, record) {
                record.add(record.is_own(), TallyFigure::Outside, change);
            }
        });
    }
}

/// A block whose size changed.
#[derive(Clone, Copy)]
pub(crate) struct ResizedBlock {
    /// The tag of the block before, or [`NO_TAG`].
    pub(crate) before: TagNumber,
    /// The tag of the block afterwards, or [`NO_TAG`].
    pub(crate) after: TagNumber,
    pub(crate) block: *const u8,
    pub(crate) old_size: usize,
    pub(crate) new_size: usize,
    pub(crate) usable: usize,
}

/// Counts a change of a block's size by code under the tag `acting`.
pub(super) fn reallocated(acting: TagNumber, resized: &ResizedBlock) {
    let change = (resized.new_size as u64).wrapping_sub(resized.old_size as u64);
    if let Some(records) = counting(acting) {
        for_chain(records, acting, &mut |record| {
            let is_own = record.is_own();
            record.add(is_own, TallyFigure::Reallocations, 1);
            record.add(is_own, TallyFigure::Requested, resized.new_size as u64);
            record.add(is_own, TallyFigure::Usable, resized.usable as u64);
            if let Some(sites) = record.sites.get() {
                sites.add(resized.block, resized.new_size);
            }
        });
    }
    match (resized.before, resized.after) {
        (NO_TAG, NO_TAG) => change_outside(NO_TAG, acting, change),
        (NO_TAG, after) => {
            change_outside(NO_TAG, acting, (resized.old_size as u64).wrapping_neg());
            if let Some(records) = counting(after) {
                for_chain(records, after, &mut |record| {
                    let is_own = record.is_own();
                    record.add(is_own, TallyFigure::Adopted, 1);
                    record.change_live(is_own, resized.new_size as u64);
                });
            }
        }
        (before, NO_TAG) => {
            // The system had no memory for the table.
            lost(before);
            freed(before, acting, resized.old_size);
        }
        (before, _) => {
            if acting != before {
                change_outside(before, acting, change);
            }
            if let Some(records) = counting(before) {
                for_chain(records, before, &mut |record| record.change_live(record.is_own(), change));
            }
        }
    }
}
