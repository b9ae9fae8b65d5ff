//! Buffers of encoded events in the engine's own memory: one buffer for each thread that records, and a bounded queue
//! of full buffers.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use dmd_format::recording::{BlockEvent, EVENT_BUFFER, EventEncoder};

use crate::system::lock::{Lock, LockUse, LockedValue};
use crate::system::memory;

/// The encoded events of one thread. All bytes are zero at first.
pub(super) struct EventBuffer {
    encoder: EventEncoder,
    started: bool,
    bytes: [u8; EVENT_BUFFER],
}

impl EventBuffer {
    /// Whether the buffer has no events.
    pub(super) fn is_empty(&self) -> bool {
        !self.started
    }

    /// The number of events.
    pub(super) fn events(&self) -> usize {
        if self.started { self.encoder.events() } else { 0 }
    }

    /// Adds an event of a thread. Returns false if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, thread: u32, event: &BlockEvent) -> bool {
        if !self.started {
            self.encoder.start(&mut self.bytes, thread, event.tick);
            self.started = true;
        }
        self.encoder.push(&mut self.bytes, event)
    }

    /// The encoded events, as the payload of a chunk.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(..self.encoder.len()).unwrap_or_default()
    }

    pub(super) fn clear(&mut self) {
        self.started = false;
    }
}

/// A buffer with exactly one owner. Dropping it leaks the memory.
pub(super) struct OwnedBuffer(NonNull<EventBuffer>);

// SAFETY: the mapping has one owner, and the owner may be any thread.
unsafe impl Send for OwnedBuffer {}

impl OwnedBuffer {
    /// Maps a fresh buffer; `None` if memory is short.
    fn map() -> Option<Self> {
        let pages = memory::map_for_dump(size_of::<EventBuffer>().next_multiple_of(PAGE));
        NonNull::new(pages.cast()).map(Self)
    }

    fn unmap(self) {
        let bytes = size_of::<EventBuffer>().next_multiple_of(PAGE);
        // SAFETY: `map` mapped the buffer with this size, and its only owner passes it here.
        unsafe { memory::unmap_for_dump(self.0.as_ptr().cast(), bytes) };
    }

    pub(super) fn as_raw(&mut self) -> *mut EventBuffer {
        self.0.as_ptr()
    }

    pub(super) fn into_raw(self) -> *mut EventBuffer {
        self.0.as_ptr()
    }

    /// # Safety
    ///
    /// The pointer is null or was returned by [`into_raw`](Self::into_raw), and it is used only once to make a buffer.
    pub(super) unsafe fn from_raw(raw: *mut EventBuffer) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }
}

const PAGE: usize = 4096;

impl Deref for OwnedBuffer {
    type Target = EventBuffer;

    fn deref(&self) -> &EventBuffer {
        // SAFETY: `map` made the mapping. Its zeros are a valid buffer, and only this owner uses it.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for OwnedBuffer {
    fn deref_mut(&mut self) -> &mut EventBuffer {
        // SAFETY: `map` made the mapping. Its zeros are a valid buffer, and only this owner uses it.
        unsafe { self.0.as_mut() }
    }
}

/// The maximum number of full buffers that wait.
const MOST_WAITING: usize = 48;
/// The number of places in the queue. The places beyond [`MOST_WAITING`] are for the thread that writes.
const PLACES: usize = 64;
/// The maximum number of empty buffers that are kept.
const MOST_FREE: usize = 16;

/// The buffers that no thread uses.
pub(super) struct BufferQueue {
    waiting: [Option<OwnedBuffer>; PLACES],
    first: usize,
    count: usize,
    free: [Option<OwnedBuffer>; MOST_FREE],
    free_count: usize,
}

static QUEUE: LockedValue<BufferQueue> = LockedValue::new(BufferQueue {
    waiting: [const { None }; PLACES],
    first: 0,
    count: 0,
    free: [const { None }; MOST_FREE],
    free_count: 0,
});

/// Locks the queue until the result is dropped.
pub(super) fn queue() -> LockUse<'static, BufferQueue> {
    QUEUE.hold()
}

pub(super) fn lock() -> &'static Lock {
    QUEUE.lock()
}

/// Returns an empty buffer; `None` if memory is short.
pub(super) fn empty() -> Option<OwnedBuffer> {
    let free = queue().take_free();
    free.or_else(OwnedBuffer::map)
}

/// Keeps a buffer for later, or unmaps it.
pub(super) fn give_back(mut buffer: OwnedBuffer) {
    buffer.clear();
    let refused = queue().keep(buffer);
    if let Some(buffer) = refused {
        buffer.unmap();
    }
}

impl BufferQueue {
    /// Adds a buffer at the end of the queue, or returns it if the queue is full. The thread that writes may also use
    /// the reserved places.
    pub(super) fn push(&mut self, buffer: OwnedBuffer, is_writer: bool) -> Result<(), OwnedBuffer> {
        if self.count >= if is_writer { PLACES } else { MOST_WAITING } {
            return Err(buffer);
        }
        self.waiting[(self.first + self.count) % PLACES] = Some(buffer);
        self.count += 1;
        Ok(())
    }

    /// Takes out the buffer that has waited longest.
    pub(super) fn pop(&mut self) -> Option<OwnedBuffer> {
        if self.count == 0 {
            return None;
        }
        let buffer = self.waiting[self.first % PLACES].take();
        self.first = (self.first + 1) % PLACES;
        self.count -= 1;
        buffer
    }

    fn take_free(&mut self) -> Option<OwnedBuffer> {
        self.free_count = self.free_count.checked_sub(1)?;
        self.free[self.free_count].take()
    }

    fn keep(&mut self, buffer: OwnedBuffer) -> Option<OwnedBuffer> {
        match self.free.get_mut(self.free_count) {
            Some(place) => {
                *place = Some(buffer);
                self.free_count += 1;
                None
            }
            None => Some(buffer),
        }
    }
}
