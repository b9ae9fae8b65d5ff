//! Readers and writers, with the buffers that they own.

use core::alloc::Layout;
use std::io::{
    BufReader, BufWriter, Chain, Cursor, Empty, LineWriter, Repeat, Sink, Stderr, Stdin, Stdout, Take, Write,
};

use memory_report::SkipReason;

use crate::measure::impls::plain::plain;
use crate::measure::impls::wrapper::parts;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([] Stdin, [] Stdout, [] Stderr, [] Empty, [] Repeat, [] Sink);
parts!(Cursor<T>, [T], self, self.get_ref());
parts!(Take<T>, [T], self, self.get_ref());
parts!(Chain<A, B>, [A, B], self, self.get_ref().0, self.get_ref().1);

/// The layout of a buffer's block; of size 0 if `capacity` is 0.
#[inline]
fn buffer(capacity: usize) -> Layout {
    // A live buffer of this capacity has this layout, so the layout is valid.
    Layout::array::<u8>(capacity).unwrap_or(Layout::new::<()>())
}

impl<T: MallocSizeOf + ?Sized> MallocSizeOf for BufReader<T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // Unread bytes are inside the block. Without unread bytes, the pointer may be at the end of the block.
        let unread = self.buffer();
        let inside = if unread.is_empty() { core::ptr::null() } else { unread.as_ptr() };
        ops.enclosing(inside, buffer(self.capacity())) + ops.field("inner", self.get_ref())
    }
}

impl<W: Write + MallocSizeOf + ?Sized> MallocSizeOf for BufWriter<W> {
    #[allow(unsafe_code, reason = "passes the start of the buffer's block to `ops.block`")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // SAFETY: the buffer is the `Vec<u8>` that `into_parts` returns. Its bytes start the block, which was
        // allocated for the capacity.
        let own = unsafe { ops.block(self.buffer().as_ptr(), buffer(self.capacity())) };
        own + ops.field("inner", self.get_ref())
    }
}

/// A writer that gives no access to its buffer.
impl<W: Write + MallocSizeOf> MallocSizeOf for LineWriter<W> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        ops.skip::<Self>(SkipReason::Opaque);
        ops.field("inner", self.get_ref())
    }
}
