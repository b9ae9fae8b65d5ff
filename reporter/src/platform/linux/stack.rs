//! This thread's stack: where it ends, and calls on a fresh one.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;

use corosensei::stack::{DefaultStack, Stack as _};

thread_local! {
    /// The addresses of the stack that this thread runs on, if they are known.
    static STACK: Cell<Option<(usize, usize)>> = Cell::new(thread_stack().map(|range| (range.start, range.end)));
}

/// How many bytes of the stack are free below the address `here` on it; `None` if the C library does not know.
///
/// On a stack that other code has made nothing counts as free, since its end is unknown.
pub(crate) fn remaining_stack(here: usize) -> Option<usize> {
    let (low, high) = STACK.get()?;
    Some(if (low..high).contains(&here) { here - low } else { 0 })
}

/// Calls `f` on a stack of at least `size` bytes that is freed afterwards. Untouched pages of it cost nothing.
pub(crate) fn on_fresh_stack<T>(size: usize, f: impl FnOnce() -> T) -> T {
    let stack = DefaultStack::new(size).expect("the system has address space for a stack of a few megabytes");
    let _restored = StackBounds(STACK.replace(Some((stack.limit().get(), stack.base().get()))));
    corosensei::on_stack(stack, f)
}

/// Puts the bounds of the earlier stack back, even after a panic.
struct StackBounds(Option<(usize, usize)>);

impl Drop for StackBounds {
    fn drop(&mut self) {
        STACK.set(self.0);
    }
}

/// The stack that the C library gave to this thread.
#[allow(unsafe_code, reason = "asks the C library")]
fn thread_stack() -> Option<Range<usize>> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: `pthread_self` has no precondition.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: this thread lives, and `attributes` has room for what the function initializes.
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
