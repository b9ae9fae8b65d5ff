//! `Rc` and `Arc`: two counts before the value.
//!
//! std does not promise where the block of a shared pointer starts. This module relies on an offset only after the
//! program's declared allocator has returned exactly these addresses. If the program declares none, or if std changes,
//! only the inside of the block is known.

use core::alloc::Layout;
use core::sync::atomic::{AtomicU8, Ordering};
use std::rc::Rc;
use std::sync::Arc;

use crate::allocator::counters::block_of;

/// The block of an `Rc` or `Arc` of `value`: std's `RcInner` and `ArcInner`, which are `repr(C)`.
#[inline]
pub(crate) fn counted<T: ?Sized>(value: &T) -> (Layout, usize) {
    match Layout::new::<[usize; 2]>().extend(Layout::for_value(value)) {
        Ok((block, offset)) => (block.pad_to_align(), offset),
        // A live value of that size cannot exist.
        Err(_) => (Layout::for_value(value), 0),
    }
}

/// The address that identifies the block of an `Rc` or `Arc`, from wherever the walk comes and whatever it knows of the
/// value's type: the byte before the value, which belongs to the counts. A value without size may lie where the next
/// block starts.
#[inline]
pub(crate) fn before<T: ?Sized>(value: *const T) -> *const u8 {
    value.cast::<u8>().wrapping_sub(1)
}

/// A byte of the block, which contains the counts and then the value.
#[inline]
pub(crate) fn inside<T: ?Sized>(value: &T) -> *const u8 {
    if size_of_val(value) == 0 { before(value) } else { (&raw const *value).cast() }
}

const UNKNOWN: u8 = 0;
const SEEN: u8 = 1;
const NOT_SEEN: u8 = 2;

static START: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether blocks of shared pointers start `offset` bytes before their value, as an experiment with the declared
/// allocator has shown.
#[inline]
pub(crate) fn start_is_known() -> bool {
    match START.load(Ordering::Relaxed) {
        SEEN => true,
        UNKNOWN => look(),
        _ => false,
    }
}

#[cold]
fn look() -> bool {
    #[repr(align(64))]
    struct Aligned(#[allow(dead_code, reason = "takes room")] u8);

    fn starts_so<T: ?Sized, P: core::ops::Deref<Target = T>>(make: impl FnOnce() -> P) -> bool {
        let (pointer, block) = block_of(make);
        let value = (&raw const *pointer).addr();
        block != 0 && value.wrapping_sub(block) == counted(&*pointer).1
    }

    let seen = starts_so(|| Rc::new(1_u8))
        && starts_so(|| Arc::new(1_u64))
        && starts_so(|| Rc::new(Aligned(1)))
        && starts_so(|| Arc::new(Aligned(1)))
        && starts_so(|| Rc::<str>::from("shared"))
        && starts_so(|| Arc::<[u128]>::from([1].as_slice()));
    START.store(if seen { SEEN } else { NOT_SEEN }, Ordering::Relaxed);
    seen
}
