//! Buffers of encoded events, from our own memory: one for each thread that records, and a bounded queue of full ones.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use dmd_format::recording::{BlockEvent, EVENT_BUFFER, EventEncoder};

use crate::system::lock::{Guarded, Lock, Use};
use crate::system::memory;

/// Events of one thread. All zero at first.
pub(super) struct Buffer {
    encoder: EventEncoder,
    started: bool,
    bytes: [u8; EVENT_BUFFER],
}

impl Buffer {
    /// Whether there is no event yet.
    pub(super) fn is_empty(&self) -> bool {
        !self.started
    }

    /// The number of events.
    pub(super) fn events(&self) -> usize {
        if self.started { self.encoder.events() } else { 0 }
    }

    /// Adds an event of a thread; false if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, thread: u32, event: &BlockEvent) -> bool {
        if !self.started {
            self.encoder.start(&mut self.bytes, thread, event.tick);
            self.started = true;
        }
        self.encoder.push(&mut self.bytes, event)
    }

    /// The payload of a chunk.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(..self.encoder.len()).unwrap_or_default()
    }

    pub(super) fn clear(&mut self) {
        self.started = false;
    }
}

/// A buffer that one place has. It is a leak to drop it.
pub(super) struct Owned(NonNull<Buffer>);

// SAFETY: the one owner of a mapping may be any thread.
unsafe impl Send for Owned {}

impl Owned {
    /// A fresh buffer; `None` if memory is short.
    fn map() -> Option<Self> {
        let pages = memory::map_for_dump(size_of::<Buffer>().next_multiple_of(PAGE));
        NonNull::new(pages.cast()).map(Self)
    }

    fn unmap(self) {
        // SAFETY: `map` mapped it with this size, and its one owner gives it here.
        unsafe { memory::unmap_for_dump(self.0.as_ptr().cast(), size_of::<Buffer>().next_multiple_of(PAGE)) };
    }

    pub(super) fn as_raw(&mut self) -> *mut Buffer {
        self.0.as_ptr()
    }

    pub(super) fn into_raw(self) -> *mut Buffer {
        self.0.as_ptr()
    }

    /// # Safety
    ///
    /// The pointer is null or came from [`into_raw`](Self::into_raw), and nobody else makes a buffer of it.
    pub(super) unsafe fn from_raw(raw: *mut Buffer) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }
}

const PAGE: usize = 4096;

impl Deref for Owned {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        // SAFETY: a mapping of `map`, whose zeroes are a buffer, and which only this owner reaches.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut Buffer {
        // SAFETY: a mapping of `map`, whose zeroes are a buffer, and which only this owner reaches.
        unsafe { self.0.as_mut() }
    }
}

/// Full buffers that wait at most.
const MOST_WAITING: usize = 48;
/// Places in the queue: those beyond [`MOST_WAITING`] are for the thread that writes.
const PLACES: usize = 64;
/// Empty buffers that are kept at most.
const MOST_FREE: usize = 16;

/// The buffers that no thread has.
pub(super) struct Queue {
    waiting: [Option<Owned>; PLACES],
    first: usize,
    count: usize,
    free: [Option<Owned>; MOST_FREE],
    free_count: usize,
}

static QUEUE: Guarded<Queue> = Guarded::new(Queue {
    waiting: [const { None }; PLACES],
    first: 0,
    count: 0,
    free: [const { None }; MOST_FREE],
    free_count: 0,
});

/// The queue, for as long as the result lives.
pub(super) fn queue() -> Use<'static, Queue> {
    QUEUE.hold()
}

pub(super) fn lock() -> &'static Lock {
    QUEUE.lock()
}

/// An empty buffer; `None` if memory is short.
pub(super) fn empty() -> Option<Owned> {
    let free = queue().take_free();
    free.or_else(Owned::map)
}

/// Keeps a buffer for later, or unmaps it.
pub(super) fn give_back(mut buffer: Owned) {
    buffer.clear();
    let refused = queue().keep(buffer);
    if let Some(buffer) = refused {
        buffer.unmap();
    }
}

impl Queue {
    /// Adds a buffer behind the others, or returns it if the queue is full. The thread that writes also has places
    /// that others do not have.
    pub(super) fn push(&mut self, buffer: Owned, is_writer: bool) -> Result<(), Owned> {
        if self.count >= if is_writer { PLACES } else { MOST_WAITING } {
            return Err(buffer);
        }
        self.waiting[(self.first + self.count) % PLACES] = Some(buffer);
        self.count += 1;
        Ok(())
    }

    /// The buffer that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Owned> {
        if self.count == 0 {
            return None;
        }
        let buffer = self.waiting[self.first % PLACES].take();
        self.first = (self.first + 1) % PLACES;
        self.count -= 1;
        buffer
    }

    fn take_free(&mut self) -> Option<Owned> {
        self.free_count = self.free_count.checked_sub(1)?;
        self.free[self.free_count].take()
    }

    fn keep(&mut self, buffer: Owned) -> Option<Owned> {
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
