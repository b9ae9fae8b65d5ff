//! `LinkedList`: two links before the element.

use core::alloc::Layout;

/// std's `ListNode`. It is `repr(Rust)` like the original, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
struct ListNode<T> {
    next: Option<core::ptr::NonNull<()>>,
    prev: Option<core::ptr::NonNull<()>>,
    element: T,
}

pub(crate) const fn node<T>() -> Layout {
    Layout::new::<ListNode<T>>()
}
