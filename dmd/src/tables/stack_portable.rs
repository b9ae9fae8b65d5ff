//! The caller's stack, as a trace, by the crate `backtrace`.
//!
//! No other file names a walker. The walk takes return addresses and looks up no symbols. It calls no Rust allocator, and
//! it may take the loader's lock, so that no thread walks while it holds a lock of the engine. A block that this thread
//! allocates meanwhile is a signal handler's: the engine records it as it does in other hooks.

use crate::options::MOST_FRAMES;
use crate::system::errno::keeping_errno;
use crate::tables::trace_id::TraceId;
use crate::tables::trace_tree::{FIRST_PC, TraceTree};

/// A place on the stack below the hook's frame; 0 if there is no hook.
#[derive(Clone, Copy)]
pub(crate) struct PortableCaller(usize);

pub(crate) use PortableCaller as Caller;

impl PortableCaller {
    pub(crate) fn new(place: usize, _: usize) -> Self {
        Self(place)
    }
}

/// What the engine knows about one thread's stack: room for the next one. All zero for a new thread.
pub(crate) struct ThreadStack {
    frames: [usize; MOST_FRAMES],
}

impl ThreadStack {
    /// Does nothing: threads keep no stacks of others here.
    pub(crate) fn forget(&mut self) {}

    /// None: the walker does not keep them.
    pub(crate) fn frames(&self) -> impl ExactSizeIterator<Item = [usize; 3]> {
        core::iter::empty()
    }

    /// Takes the running frames, outwards from the first one whose stack pointer is above `caller`; none if `caller` is
    /// 0. Of a deep stack it takes the innermost frames.
    #[inline(never)]
    pub(crate) fn trace(&mut self, PortableCaller(caller): PortableCaller, tree: &TraceTree) -> TraceId {
        if caller == 0 {
            return TraceId::NONE;
        }
        let mut count = 0;
        let mut is_program = false;
        let each = |frame: &backtrace::Frame| {
            let pc = frame.ip().addr();
            // A frame's stack pointer is that at its call, so those of DMD's own frames are below the hook's. Frames
            // further out may lie on another stack, below this one.
            is_program = is_program || frame.sp().addr() > caller;
            if is_program && pc as u64 >= FIRST_PC {
                self.frames[count] = pc;
                count += 1;
            }
            count < MOST_FRAMES
        };
        // The C++ runtime may ask the system whether a place is readable.
        keeping_errno(|| {
            // SAFETY: the lock of `backtrace::trace` is for `dbghelp.dll`, which walks on processors of 32 bits only.
            // Here the C++ runtime's unwinder walks, or `RtlVirtualUnwind` of Windows. Both may run in several threads.
            unsafe { backtrace::trace_unsynchronized(each) };
        });
        self.frames[..count].iter().rev().fold(TraceId::NONE, |parent, pc| tree.child(parent, *pc))
    }
}

/// Nothing: the walker has no state.
pub(crate) fn after_fork_in_child() {}

/// For a signal handler: whether it has interrupted a function of this library, or code that such a function called.
/// Only `libdmd.so` asks, which has the other engine.
pub(crate) fn is_interrupted_here() -> bool {
    false
}

/// Bytes of the walker's own tables: unknown.
pub(crate) fn bytes() -> usize {
    0
}
