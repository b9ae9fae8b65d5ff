//! `Rc` and `Arc`: two counts before the value.
//!
//! std does not promise where the block of a shared pointer starts. This module relies on an offset only after the
//! program's declared allocator has returned exactly these addresses. If the program declares none, or if std changes,
//! only the inside of the block is known.
//!
//! The block may also be a static, which no allocator may be asked about: the empty `Arc<str>`, `Arc<CStr>` and
//! `Arc<[T]>` of `Default` share one, and a value reaches it as any type of that size (`[T; 0]`, `dyn Trait`). The walk
//! counts the static of its own copy of std as no block. A library with a copy of its own has a static of its own, so
//! the walk takes the start of a block as known only if that cannot be such a static.

use core::alloc::Layout;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::ffi::CStr;
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

/// The block of a shared pointer, as far as the walk knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedBlock {
    /// The declared allocator returned it, as far before the value as [`counted`] says.
    Allocated,
    /// Only that the value lies in it. It may be a static of another copy of std.
    Unproven,
    /// It is std's static.
    Static,
}

/// What the walk knows of the block of a shared pointer to `value`. `strong` gives the number of strong pointers, or 0
/// if the caller cannot tell.
#[inline]
pub(crate) fn block_kind<T: ?Sized>(value: &T, strong: impl FnOnce() -> usize) -> SharedBlock {
    // An empty `CStr` has one byte. Larger values need not wait for the counts to be loaded.
    let kind = if size_of_val(value) <= 1 { kind_of_small(value, strong()) } else { SharedBlock::Allocated };
    if kind == SharedBlock::Allocated && !start_is_known() { SharedBlock::Unproven } else { kind }
}

#[inline(never)]
fn kind_of_small<T: ?Sized>(value: &T, strong: usize) -> SharedBlock {
    let start = (&raw const *value).addr().wrapping_sub(counted(value).1);
    if start == own_static() {
        return SharedBlock::Static;
    }
    // Of the types with a byte, only unsized ones reach the static.
    let is_unsized = size_of::<*const T>() != size_of::<*const ()>();
    let may_be_static = size_of_val(value) == 0 || is_unsized;
    // A static has a strong count of its own, beside that of the pointer.
    if may_be_static && strong != 1 { SharedBlock::Unproven } else { SharedBlock::Allocated }
}

/// The address of the static that the empty values of `Default` share; 0 if they have blocks of their own.
fn own_static() -> usize {
    const NOT_ASKED: usize = usize::MAX;
    static ADDRESS: AtomicUsize = AtomicUsize::new(NOT_ASKED);
    let known = ADDRESS.load(Ordering::Relaxed);
    if known != NOT_ASKED {
        return known;
    }
    let pair: [Arc<[u8]>; 2] = Default::default();
    let [first, second] = pair.each_ref().map(|empty| Arc::as_ptr(empty).addr());
    let address = if first == second { first.wrapping_sub(counted::<[u8]>(&pair[0]).1) } else { 0 };
    ADDRESS.store(address, Ordering::Relaxed);
    address
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
    struct AlignedByte(#[allow(dead_code, reason = "takes room")] u8);

    fn starts_so<T: ?Sized, P: core::ops::Deref<Target = T>>(make: impl FnOnce() -> P) -> bool {
        let (pointer, block) = block_of(make);
        let value = (&raw const *pointer).addr();
        block != 0 && value.wrapping_sub(block) == counted(&*pointer).1
    }

    let seen = starts_so(|| Rc::new(1_u8))
        && starts_so(|| Arc::new(1_u64))
        && starts_so(|| Rc::new(AlignedByte(1)))
        && starts_so(|| Arc::new(AlignedByte(1)))
        && starts_so(|| Rc::<str>::from("shared"))
        && starts_so(|| Arc::<[u128]>::from([1].as_slice()))
        && statics_have_a_count();
    START.store(if seen { SEEN } else { NOT_SEEN }, Ordering::Relaxed);
    seen
}

/// Whether each empty value of `Default` that has no block of its own shares its counts with an owner that keeps one.
fn statics_have_a_count() -> bool {
    fn has_one<T: ?Sized>(make: impl FnOnce() -> Arc<T>) -> bool {
        let (pointer, block) = block_of(make);
        block != 0 || Arc::strong_count(&pointer) > 1
    }

    let (local, block) = block_of(Rc::<[u8]>::default);
    has_one(Arc::<str>::default)
        && has_one(Arc::<CStr>::default)
        && has_one(Arc::<[u8]>::default)
        && has_one(Arc::<[u128]>::default)
        && (block != 0 || Rc::strong_count(&local) > 1)
}
