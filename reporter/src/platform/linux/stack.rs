//! This thread's stack: its free bytes, and calls on a new stack.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;

use corosensei::stack::{DefaultStack, Stack as _};

thread_local! {
    /// The address range of the stack that this thread runs on; `None` if it is unknown.
    static STACK: Cell<Option<(usize, usize)>> = Cell::new(thread_stack().map(|range| (range.start, range.end)));
}

/// The free bytes of the stack below the address `here`, which must be on the stack. `None` if the C library does not
/// provide the bounds of the stack.
///
/// On a stack that other code made, the result is 0, since the end of this stack is unknown.
pub(crate) fn remaining_stack(here: usize) -> Option<usize> {
    let (low, high) = STACK.get()?;
    Some(if (low..high).contains(&here) { here - low } else { 0 })
}

/// Calls `f` on a new stack of at least `size` bytes, and frees the stack. Untouched pages of the stack cost no
/// memory.
pub(crate) fn on_fresh_stack<T>(size: usize, f: impl FnOnce() -> T) -> T {
    let stack = DefaultStack::new(size).expect("the system has address space for a stack of a few megabytes");
    let _restored = StackBounds(STACK.replace(Some((stack.limit().get(), stack.base().get()))));
    corosensei::on_stack(stack, f)
}

/// Restores the bounds of the earlier stack, even after a panic.
struct StackBounds(Option<(usize, usize)>);

impl Drop for StackBounds {
    fn drop(&mut self) {
        STACK.set(self.0);
    }
}

/// The stack that the C library gave to this thread.
#[allow(unsafe_code, reason = "calls the C library")]
fn thread_stack() -> Option<Range<usize>> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: `pthread_self` has no precondition.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: this thread is alive, and `attributes` has room for the data that the function initializes.
    if unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size) = (ptr::null_mut(), 0);
    // SAFETY: `pthread_getattr_np` has initialized the attributes, and both results have room.
    let known = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size) } == 0;
    // SAFETY: the attributes are initialized, and this function does not use them afterwards.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    known.then(|| low.addr()..low.addr().saturating_add(size))
}
