//! `Rc` and `Arc`: two counts before the value.

use core::alloc::Layout;

/// The block of an `Rc` or `Arc` of `value`: std's `RcInner` and `ArcInner`, which are `repr(C)`.
#[inline]
pub(crate) fn counted<T: ?Sized>(value: &T) -> Layout {
    match Layout::new::<[usize; 2]>().extend(Layout::for_value(value)) {
        Ok((block, _)) => block.pad_to_align(),
        // A live value of that size cannot exist.
        Err(_) => Layout::for_value(value),
    }
}
