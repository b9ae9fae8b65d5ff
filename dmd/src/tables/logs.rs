//! Logs of allocations, for observers in the program, as in Firefox's `Debugger.Memory`.
//!
//! Threads hand their allocations over in batches, at times that they choose. So a log keeps some more entries than
//! its limit, in the order of arrival. A drain sorts the entries by time and returns the newest entries. If at most
//! [`SLACK`] allocations were waiting in the lists of threads, then a dropped entry is older than all returned
//! entries, and the drain returns as many entries as the limit.
//!
//! While a log is open, the module draws one random number for each allocation. The allocation enters each log whose
//! share is larger than the number. The nth draw depends only on n. The count of draws restarts when a log is opened
//! while no other log is open.

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::system::lock::Lock;
use crate::system::memory;
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::observers::{self, EventBatch, EventSource, Observer};
use crate::tables::trace_id::TraceId;

/// The maximum number of logs at one time.
pub(crate) const MOST: usize = 16;

/// The number of entries that a log keeps beyond its limit: the lists of 256 threads.
const SLACK: usize = 64 * 256;

/// Draws are less than this number.
const DRAWS: u64 = 1 << 53;

/// An allocation in a log.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct LoggedAllocation {
    pub(crate) tick: u64,
    pub(crate) address: usize,
    pub(crate) requested: usize,
    pub(crate) slop: u32,
    pub(crate) trace: TraceId,
}

const _: () = assert!(size_of::<LoggedAllocation>() == 32);

impl LoggedAllocation {
    fn from_event(event: &TableEvent) -> Self {
        let TableEvent { tick, address, block, .. } = *event;
        let slop = u32::try_from(block.slop).unwrap_or(u32::MAX);
        Self { tick, address, requested: block.requested, slop, trace: block.trace }
    }
}

/// The contents of a log, as counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogContents {
    pub(crate) length: u64,
    pub(crate) overflowed: bool,
    /// The number of events since the last drain that observers did not get.
    pub(crate) lost: u64,
}

/// The logs of the process.
pub(crate) static LOGS: Logs = Logs::new();

/// The logs of a process: see [`LOGS`].
pub(crate) struct Logs {
    /// The share of each log, times [`DRAWS`]; 0 for closed logs. Hooks read the shares first.
    shares: [AtomicU64; MOST],
    /// The number of the next draw.
    draws: AtomicU64,
    logs: [AllocationLog; MOST],
}

struct AllocationLog {
    lock: Lock,
    ring: UnsafeCell<AllocationRing>,
}

// SAFETY: every access to a ring happens while its lock is held.
unsafe impl Sync for Logs {}

/// The newest entries in the order of arrival. The next place is `written` modulo `capacity`. A closed log has no
/// rows.
struct AllocationRing {
    rows: *mut LoggedAllocation,
    capacity: usize,
    limit: usize,
    /// The number of entries since the last drain, including overwritten entries.
    written: usize,
    /// The number of entries that a drain may return.
    length: usize,
    overflowed: bool,
    /// The log contains no allocations before this tick.
    since: u64,
    /// The number of lost events of the process at the last drain.
    lost: u64,
}

impl AllocationRing {
    const CLOSED: Self = Self {
        rows: null_mut(),
        capacity: 0,
        limit: 0,
        written: 0,
        length: 0,
        overflowed: false,
        since: 0,
        lost: 0,
    };

    fn push(&mut self, allocation: LoggedAllocation) {
        if self.rows.is_null() || allocation.tick < self.since {
            return;
        }
        // SAFETY: the mapping has `capacity` places, and the lock keeps other threads away.
        unsafe { self.rows.wrapping_add(self.written % self.capacity).write(allocation) };
        self.written += 1;
        if self.length < self.limit { self.length += 1 } else { self.overflowed = true }
    }

    /// The entries that are not overwritten yet, in the order of arrival.
    fn rows(&self) -> impl Iterator<Item = LoggedAllocation> + '_ {
        let first = self.written.saturating_sub(self.capacity);
        // SAFETY: these places have been written, and the lock keeps writers away.
        (first..self.written).map(|at| unsafe { self.rows.wrapping_add(at % self.capacity).read() })
    }

    fn state(&self) -> LogContents {
        LogContents {
            length: self.length as u64,
            overflowed: self.overflowed,
            lost: observers::lost() - self.lost,
        }
    }

    fn unmap(&mut self) {
        if !self.rows.is_null() {
            // SAFETY: the rows were mapped with this capacity, and no pointer to the mapping is left.
            unsafe { memory::unmap_for_log(self.rows.cast(), self.capacity * size_of::<LoggedAllocation>()) };
        }
    }
}

/// Maps a new ring for a log with this limit. Returns its rows and its capacity.
fn map(limit: usize) -> Option<(*mut LoggedAllocation, usize)> {
    let capacity = limit.checked_add(SLACK)?;
    let rows = memory::map_for_log(capacity.checked_mul(size_of::<LoggedAllocation>())?);
    (!rows.is_null()).then_some((rows.cast(), capacity))
}

/// The share that belongs to a probability.
fn share(probability: f64) -> u64 {
    // The conversion saturates, and converts NaN to 0.
    ((probability * DRAWS as f64) as u64).min(DRAWS)
}

/// The nth draw: the nth number of `SplitMix64` (Steele, Lea and Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
fn draw(n: u64) -> u64 {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut bits = n.wrapping_add(1).wrapping_mul(GAMMA);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ bits >> 31) >> 11
}

impl Logs {
    pub(crate) const fn new() -> Self {
        Self {
            shares: [const { AtomicU64::new(0) }; MOST],
            draws: AtomicU64::new(0),
            logs: [const { AllocationLog { lock: Lock::new(), ring: UnsafeCell::new(AllocationRing::CLOSED) } };
                MOST],
        }
    }

    fn with<T>(&self, log: usize, body: impl FnOnce(&mut AllocationRing) -> T) -> T {
        let log = &self.logs[log];
        let _held = log.lock.hold();
        // SAFETY: the lock is held, and every access takes it. The reference ends before the lock.
        body(unsafe { &mut *log.ring.get() })
    }

    /// Opens a log of allocations that starts at this tick. Returns `None` if there is no room or no memory for another
    /// log.
    pub(crate) fn open(&self, probability: f64, limit: usize, since: u64) -> Option<usize> {
        let (rows, capacity) = map(limit)?;
        let lost = observers::lost();
        let fresh = AllocationRing { rows, capacity, limit, since, lost, ..AllocationRing::CLOSED };
        let mut fresh = Some(fresh);
        let mut others = 0;
        let mut opened = None;
        for log in 0..MOST {
            self.with(log, |ring| {
                if !ring.rows.is_null() {
                    others += 1;
                } else if let Some(fresh) = fresh.take() {
                    *ring = fresh;
                    opened = Some(log);
                }
            });
        }
        if let Some(mut unused) = fresh {
            unused.unmap();
        }
        let opened = opened?;
        if others == 0 {
            self.draws.store(0, Ordering::Relaxed);
        }
        self.shares[opened].store(share(probability), Ordering::Release);
        Some(opened)
    }

    /// Changes the limits of a log. Returns false and changes nothing if there is no memory for them, or if the log is
    /// closed.
    pub(crate) fn limit(&self, log: usize, probability: f64, limit: usize) -> bool {
        let Some((rows, capacity)) = map(limit) else { return false };
        let is_open = self.with(log, |ring| {
            let mut old =
                core::mem::replace(ring, AllocationRing { rows, capacity, limit, ..AllocationRing::CLOSED });
            if old.rows.is_null() {
                ring.unmap();
                *ring = old;
                return false;
            }
            (ring.since, ring.lost) = (old.since, old.lost);
            old.rows().for_each(|allocation| ring.push(allocation));
            ring.length = old.length.min(limit);
            ring.overflowed = old.overflowed;
            old.unmap();
            true
        });
        if is_open {
            self.shares[log].store(share(probability), Ordering::Release);
        }
        is_open
    }

    pub(crate) fn state(&self, log: usize) -> LogContents {
        self.with(log, |ring| ring.state())
    }

    /// Closes a log.
    pub(crate) fn close(&self, log: usize) {
        self.shares[log].store(0, Ordering::Release);
        self.with(log, |ring| core::mem::replace(ring, AllocationRing::CLOSED).unmap());
    }

    /// Whether any log is open.
    pub(crate) fn any(&self) -> bool {
        (0..MOST).any(|log| self.with(log, |ring| !ring.rows.is_null()))
    }

    /// Moves the entries of a log into a list, the oldest first. Also returns the state of the log before this call.
    /// The caller is inside the engine's guard, so that the list is not recorded.
    pub(crate) fn drain(&self, log: usize) -> (Vec<LoggedAllocation>, LogContents) {
        let mut list: Vec<LoggedAllocation> = Vec::new();
        loop {
            // The list grows while the lock is free, because threads that allocate wait for the lock.
            let count = self.with(log, |ring| ring.written.min(ring.capacity));
            list.reserve_exact(count + SLACK);
            let contained = self.with(log, |ring| {
                if ring.written.min(ring.capacity) > list.capacity() {
                    return None;
                }
                list.extend(ring.rows());
                let contained = ring.state();
                (ring.written, ring.length, ring.overflowed) = (0, 0, false);
                ring.lost += contained.lost;
                Some(contained)
            });
            if let Some(contained) = contained {
                let length = contained.length as usize;
                list.sort_by_key(|allocation| allocation.tick);
                list.drain(..list.len().saturating_sub(length));
                return (list, contained);
            }
        }
    }
}

impl Observer for Logs {
    fn thread_began(&self) {}

    fn observe(&self, _: EventSource, batch: &EventBatch<'_>) {
        let mut count = 0;
        batch.for_each(|event| count += u64::from(event.happened == EventKind::Began));
        if count == 0 {
            return;
        }
        let first = self.draws.fetch_add(count, Ordering::Relaxed);
        for (log, share) in self.shares.iter().enumerate() {
            let share = share.load(Ordering::Acquire);
            if share == 0 {
                continue;
            }
            self.with(log, |ring| {
                let mut n = first;
                batch.for_each(|event| {
                    if event.happened == EventKind::Began {
                        if draw(n) < share {
                            ring.push(LoggedAllocation::from_event(&event));
                        }
                        n += 1;
                    }
                });
            });
        }
    }

    fn thread_ended(&self, _: EventSource, _: bool) {}

    fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        self.logs.iter().for_each(|log| each(&log.lock));
    }

    /// Does nothing: the child has its own logs, which start with the parent's entries.
    fn after_fork_in_child(&self) {}
}
