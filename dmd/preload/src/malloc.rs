//! `malloc` and its family: the real call, and one call of the engine.
//!
//! Arguments are passed on untouched, so sizes of zero, overflows and `errno` are what the real functions
//! make of them. A block is forgotten before it is freed, or another thread could get its address in
//! between, and taken before it is moved, for the same reason.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use engine::__private::{
    Allocator, Recording, begin_move, commit_move, forget, passes_by, record, recording, roll_back_move,
};

use crate::real::Giver;
use crate::{bootstrap, real, start};

/// How a self-test of the engine allocates.
pub(crate) const THIS_LIBRARY: Allocator = Allocator {
    alloc: |bytes| {
        // SAFETY: no precondition.
        unsafe { malloc(bytes) }.cast()
    },
    free: |block, _| {
        // SAFETY: the self-test passes blocks of the function above, each once.
        unsafe { free(block.cast()) }
    },
};

/// Records a new block.
#[inline(always)]
fn recorded(giver: Giver, block: *mut c_void, requested: usize) -> *mut c_void {
    match recording() {
        Recording::No => return block,
        Recording::Undecided => {
            start::try_to_start(THIS_LIBRARY);
            if recording() == Recording::No {
                return block;
            }
        }
        Recording::Yes => {}
    }
    if !block.is_null() && !passes_by() {
        // SAFETY: a live block of the real functions.
        let usable = unsafe { real::usable(giver, block, requested) };
        record(block, requested, usable);
    }
    block
}

/// Keeps the call before it from being a jump: a handler that has interrupted the real function learns so from the
/// stack.
#[inline(always)]
fn stay_on_the_stack() {
    // SAFETY: does nothing.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// As C's.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    if !real::known() {
        return bootstrap::alloc(bytes, 1);
    }
    // SAFETY: the real functions are known.
    recorded(Giver::Malloc, unsafe { real::malloc(bytes) }, bytes)
}

/// As C's.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    if !real::known() {
        return count.checked_mul(bytes).map_or(null_mut(), |bytes| bootstrap::alloc(bytes, 1));
    }
    // SAFETY: the real functions are known. What overflows gives null, which is not recorded.
    recorded(Giver::Calloc, unsafe { real::calloc(count, bytes) }, count.wrapping_mul(bytes))
}

/// As C's.
///
/// # Safety
///
/// The block is null or live.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the function has no precondition.
        return unsafe { realloc_null(bytes) };
    }
    if bootstrap::owns(block) {
        // SAFETY: the program passes a live block, which is of `bootstrap`.
        return unsafe { move_out(block, bytes) };
    }
    if recording() == Recording::No {
        // SAFETY: the program passes a live block, and so the real functions, which gave it, are known.
        return unsafe { real::realloc(block, bytes) };
    }
    let begun = begin_move(block);
    // SAFETY: the program passes a live block, and so the real functions are known.
    let moved = unsafe { real::realloc(block, bytes) };
    if moved.is_null() && bytes != 0 {
        roll_back_move(begun);
        return moved;
    }
    commit_move(begun);
    recorded(Giver::Realloc, moved, bytes)
}

#[inline(always)]
unsafe fn realloc_null(bytes: usize) -> *mut c_void {
    if !real::known() {
        return bootstrap::alloc(bytes, 1);
    }
    // SAFETY: the real functions are known.
    recorded(Giver::Realloc, unsafe { real::realloc(null_mut(), bytes) }, bytes)
}

/// A block from before the real functions were known gets a real one in its place.
#[cold]
unsafe fn move_out(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: no precondition.
    let moved = unsafe { malloc(bytes) };
    if !moved.is_null() {
        let count = bootstrap::size(block).min(bytes);
        // SAFETY: both blocks are that large, and one was just made.
        unsafe { moved.cast::<u8>().copy_from_nonoverlapping(block.cast(), count) };
    }
    moved
}

/// As C's.
///
/// # Safety
///
/// The block is null or live.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: the program passes null or a live block.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => {
            // SAFETY: always a valid pointer to this thread's errno.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            unsafe { *errno = libc::ENOMEM };
            null_mut()
        }
    }
}

/// As C's.
///
/// # Safety
///
/// The block is null or live, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() || bootstrap::owns(block) || !real::known() {
        return;
    }
    if recording() != Recording::No {
        forget(block);
    }
    // SAFETY: the real functions are known, and the program passes a live block that it uses no more.
    unsafe { real::free(block) }
    stay_on_the_stack();
}

/// An old name of [`free`].
///
/// # Safety
///
/// As [`free`]'s.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the program passes null or a live block that it uses no more.
    unsafe { free(block) }
}

/// As C's.
///
/// # Safety
///
/// The place is valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !real::known() {
        return libc::ENOMEM;
    }
    // SAFETY: the real functions are known, and the program passes a valid place.
    let error = unsafe { real::posix_memalign(place, align, bytes) };
    if error == 0 {
        // SAFETY: written when the call succeeded.
        recorded(Giver::PosixMemalign, unsafe { *place }, bytes);
    }
    error
}

/// As C's.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    if !real::known() {
        return bootstrap::alloc(bytes, align);
    }
    // SAFETY: the real functions are known.
    recorded(Giver::AlignedAlloc, unsafe { real::aligned_alloc(align, bytes) }, bytes)
}

/// As C's.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    if !real::known() {
        return bootstrap::alloc(bytes, align);
    }
    // SAFETY: the real functions are known.
    recorded(Giver::Memalign, unsafe { real::memalign(align, bytes) }, bytes)
}

/// As C's.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    if !real::known() {
        return bootstrap::alloc(bytes, 4096);
    }
    // SAFETY: the real functions are known.
    recorded(Giver::Valloc, unsafe { real::valloc(bytes) }, bytes)
}

/// As C's.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    if !real::known() {
        return bytes
            .checked_next_multiple_of(4096)
            .map_or(null_mut(), |bytes| bootstrap::alloc(bytes, 4096));
    }
    // SAFETY: the real functions are known.
    recorded(Giver::Pvalloc, unsafe { real::pvalloc(bytes) }, bytes)
}

/// As glibc's.
///
/// # Safety
///
/// The block is null or live.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if bootstrap::owns(block) {
        return bootstrap::size(block);
    }
    if !real::known() {
        return 0;
    }
    // SAFETY: the real functions are known, and the program passes null or a live block.
    unsafe { real::malloc_usable_size(block) }
}
