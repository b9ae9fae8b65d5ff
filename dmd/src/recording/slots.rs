//! The buffer and the name of each thread, by the number of its lease.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::recording::buffer::{EventBuffer, OwnedBuffer};
use crate::system::memory;

const SEGMENT: usize = 256;
const SEGMENTS: usize = 1024;

/// What the recording has for a lease. All zero at first.
pub(super) struct BufferSlot {
    buffer: AtomicPtr<EventBuffer>,
    /// The buffer that the lease's thread fills now. If the jump of a signal handler left that thread meanwhile, it still is
    /// here the next time.
    filled: AtomicPtr<EventBuffer>,
    /// Events that would be lost if a jump left the thread now.
    at_risk: AtomicU32,
    /// The number of the lease's thread; 0 if no event of it was recorded.
    thread: AtomicU32,
    system_id: AtomicU32,
    /// How often the name of the thread was looked up.
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

    /// Takes the buffer away. Of several threads that do so, one gets it.
    pub(super) fn take(&self) -> Option<OwnedBuffer> {
        // SAFETY: null or a pointer of `put`, and the exchange gives it to one thread only.
        unsafe { OwnedBuffer::from_raw(self.buffer.swap(null_mut(), Ordering::AcqRel)) }
    }

    /// Notes the buffer that the thread fills, and the events that a jump would lose. Only the thread that holds the lock of
    /// the lease calls this.
    #[inline(always)]
    pub(super) fn fill(&self, buffer: Option<&mut OwnedBuffer>, at_risk: usize) {
        self.at_risk.store(at_risk as u32, Ordering::Relaxed);
        self.filled.store(buffer.map_or(null_mut(), OwnedBuffer::as_raw), Ordering::Relaxed);
    }

    /// As [`fill`](Self::fill), for the same buffer.
    #[inline(always)]
    pub(super) fn still_at_risk(&self, at_risk: usize) {
        self.at_risk.store(at_risk as u32, Ordering::Relaxed);
    }

    /// The buffer that a jump left, and the number of events that it lost. As for [`fill`](Self::fill).
    #[inline(always)]
    pub(super) fn left_by_jump(&self) -> Option<(Option<OwnedBuffer>, usize)> {
        let (buffer, lost) = (&self.filled, self.at_risk.load(Ordering::Relaxed));
        if lost == 0 {
            return None;
        }
        self.at_risk.store(0, Ordering::Relaxed);
        // SAFETY: null, or the buffer that a thread with the lock had, which never put it back.
        Some((unsafe { OwnedBuffer::from_raw(buffer.swap(null_mut(), Ordering::Relaxed)) }, lost as usize))
    }

    /// Puts a buffer where none is.
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

    /// Notes whose events come. Only the thread that holds the lock of the lease calls this.
    pub(super) fn set_thread(&self, thread: u32, system_id: u32) {
        if self.thread.load(Ordering::Relaxed) != thread {
            self.names.store(0, Ordering::Relaxed);
            self.system_id.store(system_id, Ordering::Relaxed);
            self.thread.store(thread, Ordering::Release);
        }
    }

    /// The thread's number and the system's, if its name is to be looked up once more: the first names of threads are
    /// mostly those of their parents.
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
/// For events whose thread is not known.
static UNKNOWN: BufferSlot = BufferSlot::new();

/// The slot of a lease, or that of all unknown threads; `None` if memory is short.
#[inline]
pub(super) fn slot_for(lease: Option<usize>) -> Option<&'static BufferSlot> {
    let Some(lease) = lease else { return Some(&UNKNOWN) };
    let place = ALL.get(lease / SEGMENT)?;
    if place.load(Ordering::Relaxed).is_null() && !memory::map_once(place, &MAPPED) {
        return None;
    }
    // SAFETY: a segment of `map_once`. Its zeroes are slots, and it stays mapped.
    let segment = unsafe { place.load(Ordering::Acquire).as_ref() }?;
    Some(&segment[lease % SEGMENT])
}

/// All slots that there are.
pub(super) fn all() -> impl Iterator<Item = &'static BufferSlot> {
    let segments = ALL.iter().filter_map(|place| {
        // SAFETY: null, or a segment of `map_once`, which stays mapped.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    });
    segments.flatten().chain([&UNKNOWN])
}
