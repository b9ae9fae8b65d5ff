//! Live bytes of the declared allocator, counted exactly and, on most threads, without contention.
//!
//! A thread leases its own slot and is the slot's only writer, so that counting is a load and a store. When the
//! thread ends, it returns the slot. The slot's count stays, and the next lessee continues from this count. At most
//! [`SLOTS`] threads have a slot at once. A thread also has no slot near the start and the end of its life. A thread
//! without a slot counts with atomic additions on the shared slot.
//!
//! These functions run inside allocations: they neither panic nor hold a lock. Leasing may allocate, on platforms
//! where a thread-local with a destructor allocates. Such an allocation counts on the shared slot.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::platform;

const SLOTS: usize = 256;

/// Aligned to its own cache line, so that counting threads do not slow each other down.
#[repr(align(128))]
struct CounterSlot {
    /// The bytes that the lessees allocated minus the bytes that they freed. The number wraps around if it is negative:
    /// one thread may free a block that another thread allocated.
    bytes: AtomicUsize,
    leased: AtomicBool,
    /// The kernel's number of the thread that leases the slot; 0 if no thread leases it.
    thread: AtomicU32,
    /// An address on the stack of that thread.
    stack: AtomicUsize,
}

impl CounterSlot {
    const fn new() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            leased: AtomicBool::new(false),
            thread: AtomicU32::new(0),
            stack: AtomicUsize::new(0),
        }
    }
}

static LEASED: [CounterSlot; SLOTS] = [const { CounterSlot::new() }; SLOTS];
static SHARED: CounterSlot = CounterSlot::new();

/// The thread has not tried to lease a slot yet.
const FRESH: usize = usize::MAX;
/// The thread has no slot and uses the shared slot.
const SHARING: usize = usize::MAX - 1;
/// The thread uses the shared slot, and also records its last block; see [`noted`].
const NOTING: usize = usize::MAX - 2;

std::thread_local! {
    /// The index of this thread's slot, or `FRESH`, `SHARING` or `NOTING`. It has no destructor, so it is always
    /// accessible.
    static SLOT: Cell<usize> = const { Cell::new(FRESH) };
    static LEASE: SlotLease = const { SlotLease };
    static NOTED: Cell<NotedBlock> = const { Cell::new(NotedBlock { block: 0, place: 0 }) };
}

/// A block, and an address inside the static that the block passed through. Zeros mean no block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedBlock {
    block: usize,
    place: usize,
}

impl NotedBlock {
    /// `place` must be inside the static.
    pub(crate) fn new<P>(block: *const u8, place: &P) -> Self {
        Self { block: block.addr(), place: (&raw const *place).addr() }
    }
}

struct SlotLease;

impl Drop for SlotLease {
    fn drop(&mut self) {
        let slot = SLOT.replace(SHARING);
        if let Some(slot) = LEASED.get(slot) {
            slot.thread.store(0, Ordering::Relaxed);
            slot.leased.store(false, Ordering::Release);
        }
    }
}

/// Counts a new block. Records the block if a call of [`noted`] is running on this thread.
#[inline]
pub(crate) fn allocated(bytes: usize, note: impl FnOnce() -> NotedBlock) {
    if !count(bytes) {
        count_without_slot(bytes);
        if SLOT.get() == NOTING {
            NOTED.set(note());
        }
    }
}

/// Subtracts the bytes of a freed block.
#[inline]
pub(crate) fn freed(bytes: usize) {
    if !count(bytes.wrapping_neg()) {
        count_without_slot(bytes.wrapping_neg());
    }
}

#[inline]
fn count(bytes: usize) -> bool {
    let Some(slot) = LEASED.get(SLOT.get()) else { return false };
    let sum = slot.bytes.load(Ordering::Relaxed).wrapping_add(bytes);
    slot.bytes.store(sum, Ordering::Relaxed);
    true
}

/// Calls `make`. Returns its value, and the last block that this thread allocated during the call through a static of
/// [`CountingAllocator`](super::CountingAllocator).
pub(crate) fn noted<T>(make: impl FnOnce() -> T) -> (T, NotedBlock) {
    NOTED.set(NotedBlock { block: 0, place: 0 });
    let slot = SLOT.replace(NOTING);
    let value = make();
    SLOT.set(slot);
    (value, NOTED.get())
}

/// Like [`noted`], but returns only the block's address. It is 0 if `make` allocates no block, or if no allocator is
/// declared.
pub(crate) fn block_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let (value, noted) = noted(make);
    (value, noted.block)
}

#[cold]
fn count_without_slot(bytes: usize) {
    SHARED.bytes.fetch_add(bytes, Ordering::Relaxed);
    if SLOT.get() == FRESH {
        SLOT.set(SHARING);
        if LEASE.try_with(|_| ()).is_ok()
            && let Some(index) = LEASED.iter().position(|slot| {
                !slot.leased.load(Ordering::Relaxed) && !slot.leased.swap(true, Ordering::Acquire)
            })
        {
            let here = 0u8;
            LEASED[index].stack.store((&raw const here).addr(), Ordering::Relaxed);
            LEASED[index].thread.store(platform::thread_id(), Ordering::Relaxed);
            SLOT.set(index);
        }
    }
}

/// For each thread with a slot: the kernel's number of the thread, and an address on the thread's stack.
pub(crate) fn noted_stacks() -> Vec<(u32, usize)> {
    LEASED
        .iter()
        .map(|slot| (slot.thread.load(Ordering::Relaxed), slot.stack.load(Ordering::Relaxed)))
        .filter(|(thread, _)| *thread != 0)
        .collect()
}

/// The usable bytes of all live blocks that passed through the declared allocator, on all threads.
///
/// Exact while no thread allocates or frees; `None` without a declared allocator.
pub(crate) fn heap_allocated_counter() -> Option<usize> {
    super::declared().map(|_| {
        LEASED
            .iter()
            .chain([&SHARED])
            .fold(0, |sum: usize, slot| sum.wrapping_add(slot.bytes.load(Ordering::Relaxed)))
    })
}
