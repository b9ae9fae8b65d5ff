//! `Rc` and `Arc`, whose block contains two counts before the value.
//!
//! std does not promise where the block of a shared pointer starts. This module uses an offset only after an
//! experiment has shown that the program's declared allocator returns blocks with this offset. Without a declared
//! allocator, or if std changes, only addresses inside the block are known.
//!
//! The block may also be a static, which must not be passed to an allocator. The empty `Arc<str>`, `Arc<CStr>` and
//! `Arc<[T]>` of `Default` share one static, and a value may have any type of that size (`[T; 0]`, `dyn Trait`). The
//! walk recognizes the static of its own copy of std, and does not count it. A library with its own copy of std has
//! another static. So the walk takes the start of a block as known only if the block cannot be such a static.

use core::alloc::Layout;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::ffi::CStr;
use std::rc::Rc;
use std::sync::Arc;

use crate::allocator::counters::block_of;

/// The layout of the block of an `Rc` or `Arc`, and the offset of `value` in it: std's `RcInner` and `ArcInner`,
/// which are `repr(C)`.
#[inline]
pub(crate) fn counted<T: ?Sized>(value: &T) -> (Layout, usize) {
    match Layout::new::<[usize; 2]>().extend(Layout::for_value(value)) {
        Ok((block, offset)) => (block.pad_to_align(), offset),
        // The layout of a live value's block cannot overflow.
        Err(_) => (Layout::for_value(value), 0),
    }
}

/// The address that identifies the block of an `Rc` or `Arc`: the byte before the value, which belongs to the counts.
/// The address is the same for every path to the block, and for pointers of any type (`Arc<T>`, `Arc<dyn Trait>`).
/// The address of the value itself is not suitable: a value of size 0 may be at the start of the next block.
#[inline]
pub(crate) fn before<T: ?Sized>(value: *const T) -> *const u8 {
    value.cast::<u8>().wrapping_sub(1)
}

/// The address of a byte of the block. The block contains the counts and then the value.
#[inline]
pub(crate) fn inside<T: ?Sized>(value: &T) -> *const u8 {
    if size_of_val(value) == 0 { before(value) } else { (&raw const *value).cast() }
}

/// The kind of block behind a shared pointer, as far as the walk can find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedBlock {
    /// The declared allocator returned the block. Its start is before the value, by the offset of [`counted`].
    Allocated,
    /// Only an address inside the block is known. The block may be a static of another copy of std.
    Unproven,
    /// The block is the static of this copy of std.
    Static,
}

/// Classifies the block of a shared pointer to `value`. `strong` returns the number of strong pointers, or 0 if it is
/// unknown.
#[inline]
pub(crate) fn block_kind<T: ?Sized>(value: &T, strong: impl FnOnce() -> usize) -> SharedBlock {
    // An empty `CStr` has one byte. For larger values the counts are not loaded, which saves time.
    let kind = if size_of_val(value) <= 1 { kind_of_small(value, strong()) } else { SharedBlock::Allocated };
    if kind == SharedBlock::Allocated && !start_is_known() { SharedBlock::Unproven } else { kind }
}

#[inline(never)]
fn kind_of_small<T: ?Sized>(value: &T, strong: usize) -> SharedBlock {
    let start = (&raw const *value).addr().wrapping_sub(counted(value).1);
    if start == own_static() {
        return SharedBlock::Static;
    }
    // For values of one byte, only a pointer to an unsized type can reach the static.
    let is_unsized = size_of::<*const T>() != size_of::<*const ()>();
    let may_be_static = size_of_val(value) == 0 || is_unsized;
    // A static has one strong count for itself, in addition to one strong count for each pointer.
    if may_be_static && strong != 1 { SharedBlock::Unproven } else { SharedBlock::Allocated }
}

/// The address of the static that the empty values of `Default` share; 0 if they have their own blocks.
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

/// Whether the block of a shared pointer starts before the value, by the offset that [`counted`] computes. The first
/// call tests this with the declared allocator.
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

/// Whether the strong count shows if an empty value of `Default` is a static. This is the case if each such value
/// either has its own block, or has a strong count of more than 1.
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
