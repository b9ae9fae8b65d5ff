//! The caller's stack, as a trace, by the crate `backtrace`.
//!
//! Only this file uses a walker. The walk takes return addresses and looks up no symbols. It calls no Rust allocator.
//! It may take the loader's lock, so a thread never walks while it holds a lock of the engine. A block that this
//! thread allocates during the walk belongs to a signal handler: the engine records it as it does in other hooks.

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

/// The engine's data about one thread's stack: room for the next stack. All zero for a new thread.
pub(crate) struct ThreadStack {
    frames: [usize; MOST_FRAMES],
}

impl ThreadStack {
    /// Does nothing: the state contains no data about another thread's stack.
    pub(crate) fn forget(&mut self) {}

    /// Returns no frames: the walker does not keep them.
    pub(crate) fn frames(&self) -> impl ExactSizeIterator<Item = [usize; 3]> {
        core::iter::empty()
    }

    /// Takes the current frames, outwards from the first frame whose stack pointer is above `caller`. Takes no frames
    /// if `caller` is 0. If the stack is deep, takes the innermost frames.
    #[inline(never)]
    pub(crate) fn trace(&mut self, PortableCaller(caller): PortableCaller, tree: &TraceTree) -> TraceId {
        if caller == 0 {
            return TraceId::NONE;
        }
        let mut count = 0;
        let mut is_program = false;
        let each = |frame: &backtrace::Frame| {
            let pc = frame.ip().addr();
            // The stack pointer of a frame is the stack pointer at its call. So the stack pointers of DMD's own frames
            // are below the hook's. Outer frames may be on another stack, at lower addresses.
            is_program = is_program || frame.sp().addr() > caller;
            if is_program && pc as u64 >= FIRST_PC {
                self.frames[count] = pc;
                count += 1;
            }
            count < MOST_FRAMES
        };
        // The C++ runtime may check through the system whether an address is readable.
        keeping_errno(|| {
            // SAFETY: `backtrace::trace` takes a lock for `dbghelp.dll`, which walks only on processors of 32 bits.
            // Here the unwinder of the C++ runtime walks, or `RtlVirtualUnwind` of Windows. Both may run in several
            // threads.
            unsafe { backtrace::trace_unsynchronized(each) };
        });
        self.frames[..count].iter().rev().fold(TraceId::NONE, |parent, pc| tree.child(parent, *pc))
    }
}

/// Does nothing: the walker has no state.
pub(crate) fn after_fork_in_child() {}

/// For a signal handler: whether it has interrupted a function of this library, or code that such a function called.
/// Returns false, since only `libdmd.so` calls this, and it has the native engine.
pub(crate) fn is_interrupted_here() -> bool {
    false
}

/// Returns 0: the size of the walker's own tables is unknown.
pub(crate) fn bytes() -> usize {
    0
}
