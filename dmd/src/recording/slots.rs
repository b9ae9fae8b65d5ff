//! The buffer of each thread, and the numbers with which its name is looked up, by the number of its lease.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::recording::buffer::{EventBuffer, OwnedBuffer};
use crate::system::memory;

const SEGMENT: usize = 256;
const SEGMENTS: usize = 1024;

/// The state of the recording for one lease. All zero at first.
pub(super) struct BufferSlot {
    buffer: AtomicPtr<EventBuffer>,
    /// The buffer that the lease's thread fills now. If a signal handler jumps out of the code that fills the buffer,
    /// the pointer is still set at the next event.
    filled: AtomicPtr<EventBuffer>,
    /// The number of events that would be lost if a signal handler jumped out of that code now.
    at_risk: AtomicU32,
    /// The number of the lease's thread; 0 if none of its events was recorded.
    thread: AtomicU32,
    system_id: AtomicU32,
    /// The number of times that the name of the thread was looked up.
    names: AtomicU32,
}

impl BufferSlot {
    const fn new() -> Self {
        Self {
            buffer: AtomicPtr::new(null_mut()),
            filled: AtomicPtr::new(null_mut()),
            at_risk: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            system_id: AtomicU32::new(0),
            names: AtomicU32::new(0),
        }
    }

    /// Takes the buffer away. If several threads call this at once, only one thread gets the buffer.
    pub(super) fn take(&self) -> Option<OwnedBuffer> {
        // SAFETY: the pointer is null or comes from `put`, and the exchange gives it to only one thread.
        unsafe { OwnedBuffer::from_raw(self.buffer.swap(null_mut(), Ordering::AcqRel)) }
    }

    /// Stores the buffer that the thread fills, and the number of events that a jump would lose. Only the thread that
    /// holds the lock of the lease calls this.
    #[inline(always)]
    pub(super) fn fill(&self, buffer: Option<&mut OwnedBuffer>, at_risk: usize) {
        self.at_risk.store(at_risk as u32, Ordering::Relaxed);
        self.filled.store(buffer.map_or(null_mut(), OwnedBuffer::as_raw), Ordering::Relaxed);
    }

    /// Like [`fill`](Self::fill), for the same buffer.
    #[inline(always)]
    pub(super) fn still_at_risk(&self, at_risk: usize) {
        self.at_risk.store(at_risk as u32, Ordering::Relaxed);
    }

    /// Returns the buffer that a jump left, and the number of events that were lost; `None` if no event was lost. Only
    /// the thread that holds the lock of the lease calls this.
    #[inline(always)]
    pub(super) fn left_by_jump(&self) -> Option<(Option<OwnedBuffer>, usize)> {
        let (buffer, lost) = (&self.filled, self.at_risk.load(Ordering::Relaxed));
        if lost == 0 {
            return None;
        }
        self.at_risk.store(0, Ordering::Relaxed);
        // SAFETY: the pointer is null, or the buffer of a thread with the lock, and that thread never put the buffer
        // back.
        Some((unsafe { OwnedBuffer::from_raw(buffer.swap(null_mut(), Ordering::Relaxed)) }, lost as usize))
    }

    /// Puts a buffer into the slot, which must be empty.
    pub(super) fn put(&self, buffer: OwnedBuffer) {
        self.buffer.store(buffer.into_raw(), Ordering::Release);
    }

    /// Forgets the thread and its events. Only a caller that holds the lock of the lease calls this.
    pub(super) fn empty(&self) {
        self.forget_thread();
        if let Some(mut buffer) = self.take() {
            buffer.clear();
            self.put(buffer);
        }
    }

    /// Stores the thread whose events come next. Only the thread that holds the lock of the lease calls this.
    pub(super) fn set_thread(&self, thread: u32, system_id: u32) {
        if self.thread.load(Ordering::Relaxed) != thread {
            self.names.store(0, Ordering::Relaxed);
            self.system_id.store(system_id, Ordering::Relaxed);
            self.thread.store(thread, Ordering::Release);
        }
    }

    /// Returns the thread's number and the system's number of the thread, if its name must be looked up again. The
    /// first name of a thread is usually the name of its parent.
    pub(super) fn nameless(&self) -> Option<(u32, u32)> {
        const LOOKS: u32 = 3;
        let thread = self.thread.load(Ordering::Acquire);
        let looks = self.names.load(Ordering::Relaxed);
        if thread == 0 || looks >= LOOKS {
            return None;
        }
        self.names.store(looks + 1, Ordering::Relaxed);
        Some((thread, self.system_id.load(Ordering::Relaxed)))
    }

    pub(super) fn forget_thread(&self) {
        self.thread.store(0, Ordering::Release);
    }
}

type SlotSegment = [BufferSlot; SEGMENT];

static ALL: [AtomicPtr<SlotSegment>; SEGMENTS] = [const { AtomicPtr::new(null_mut()) }; SEGMENTS];
static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// The slot for events whose thread is not known.
static UNKNOWN: BufferSlot = BufferSlot::new();

/// The slot of a lease, or the slot of all unknown threads if `lease` is `None`. Returns `None` if memory is short.
#[inline]
pub(super) fn slot_for(lease: Option<usize>) -> Option<&'static BufferSlot> {
    let Some(lease) = lease else { return Some(&UNKNOWN) };
    let place = ALL.get(lease / SEGMENT)?;
    if place.load(Ordering::Relaxed).is_null() && !memory::map_once(place, &MAPPED) {
        return None;
    }
    // SAFETY: the pointer is null or points to a segment of `map_once`, whose zeros are valid slots. Segments are never
    // unmapped.
    let segment = unsafe { place.load(Ordering::Acquire).as_ref() }?;
    Some(&segment[lease % SEGMENT])
}

/// All slots that exist.
pub(super) fn all() -> impl Iterator<Item = &'static BufferSlot> {
    let segments = ALL.iter().filter_map(|place| {
        // SAFETY: the pointer is null or points to a segment of `map_once`, which is never unmapped.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    });
    segments.flatten().chain([&UNKNOWN])
}
