//! `malloc` and its family: each function makes the real call, and one call of the engine.
//!
//! The functions pass their arguments on unchanged. So the real functions decide how sizes of zero and overflows are
//! handled, and set `errno`. The engine forgets a block before the real function frees or moves it: after the real
//! call, another thread may already have a block at that address.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::io;

use engine::__private::{
    Allocator, OLDER_BLOCKS, PreloadRecording, SizeOf, allocation_failed, begin_move, commit_move, forget,
    has_no_record, is_engine_thread, is_recorded, passes_by, passes_over, record, recording, roll_back_move,
};

use crate::real::AllocatingFunction;
use crate::{bootstrap, real, start};

/// The allocator for the engine's self-test.
pub(crate) const THIS_LIBRARY: Allocator = Allocator {
    alloc: |bytes| {
        // SAFETY: the function has no precondition.
        unsafe { malloc(bytes) }.cast()
    },
    free: |block, _| {
        // SAFETY: the self-test passes each block of `alloc` once.
        unsafe { free(block.cast()) }
    },
};

/// Whether this thread must not call the real functions: before they are looked up, and on an engine thread. While the
/// program has one thread, the real functions take no locks, so a call of an engine thread would be a data race.
#[inline(always)]
fn needs_own_memory() -> bool {
    !real::known() || is_engine_thread()
}

/// Records a new block of a function of the C library.
#[inline(always)]
fn recorded(giver: AllocatingFunction, block: *mut c_void, requested: usize) -> *mut c_void {
    recorded_with(|| real::size_of(giver), block, requested)
}

/// Records a new block. `size_of` returns the function for its usable size.
#[inline(always)]
pub(crate) fn recorded_with(
    size_of: impl FnOnce() -> Option<SizeOf>,
    block: *mut c_void,
    requested: usize,
) -> *mut c_void {
    if block.is_null() {
        refused(requested);
        return block;
    }
    match recording() {
        PreloadRecording::Sample if passes_over(requested) => return block,
        PreloadRecording::No => return block,
        PreloadRecording::Undecided => {
            start::try_to_start(THIS_LIBRARY);
            if recording() == PreloadRecording::No {
                return block;
            }
        }
        PreloadRecording::Yes | PreloadRecording::Sample => {}
    }
    if !passes_by() {
        // SAFETY: the real function has just returned this block, and the program has not seen it yet: it is live.
        unsafe { record(block, requested, size_of()) };
    }
    block
}

/// Lets a black box write a dump before the program sees that there is no memory.
#[cold]
#[inline(never)]
fn refused(requested: usize) {
    if io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM) && !is_engine_thread() {
        allocation_failed(requested);
    }
}

/// Prevents the compiler from turning the call before this one into a jump. So the frame of this library stays on the
/// stack, and a signal handler finds that it has interrupted the real function.
#[inline(always)]
pub(crate) fn stay_on_the_stack() {
    // SAFETY: the assembly is empty, so the options hold.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The function has no precondition.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return bootstrap::alloc(bytes, 1);
    }
    // SAFETY: the real functions are known.
    recorded(AllocatingFunction::Malloc, unsafe { real::malloc(bytes) }, bytes)
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The function has no precondition.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return count.checked_mul(bytes).map_or(null_mut(), |bytes| bootstrap::alloc(bytes, 1));
    }
    // SAFETY: the real functions are known. If the product overflows, `calloc` returns null, which is not recorded.
    recorded(AllocatingFunction::Calloc, unsafe { real::calloc(count, bytes) }, count.wrapping_mul(bytes))
}

/// Behaves as C's function of this name.
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
        // SAFETY: the program passes a live block, and `owns` has found that it belongs to `bootstrap`.
        return unsafe { move_out(block, bytes) };
    }
    if recording() == PreloadRecording::No {
        // SAFETY: the program passes a live block. A real function made it, so the real functions are known.
        return unsafe { real::realloc(block, bytes) };
    }
    if has_no_record(block) {
        // SAFETY: as above.
        return recorded(AllocatingFunction::Realloc, unsafe { real::realloc(block, bytes) }, bytes);
    }
    let begun = begin_move(block);
    let older = match begun.has_block() {
        true => None,
        // SAFETY: as above.
        false => unsafe { older_size(block) },
    };
    // SAFETY: as above.
    let moved = unsafe { real::realloc(block, bytes) };
    if moved.is_null() && bytes != 0 {
        roll_back_move(begun);
        refused(bytes);
        return moved;
    }
    if let Some(usable) = older {
        OLDER_BLOCKS.count_free(usable);
    }
    commit_move(begun);
    recorded(AllocatingFunction::Realloc, moved, bytes)
}

#[inline(always)]
unsafe fn realloc_null(bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return bootstrap::alloc(bytes, 1);
    }
    // SAFETY: the real functions are known.
    recorded(AllocatingFunction::Realloc, unsafe { real::realloc(null_mut(), bytes) }, bytes)
}

/// Replaces a block of `bootstrap` by a real block.
#[cold]
unsafe fn move_out(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the function has no precondition.
    let moved = unsafe { malloc(bytes) };
    if !moved.is_null() {
        let count = bootstrap::size(block).min(bytes);
        // SAFETY: both blocks have at least `count` bytes, and `malloc` just made one, so they do not overlap.
        unsafe { moved.cast::<u8>().copy_from_nonoverlapping(block.cast(), count) };
    }
    moved
}

/// The program's own `realloc`, or its hook. Null if the program calls the function here.
static PROGRAM_REALLOC: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Lets [`reallocarray`] call the program's `realloc`, as the C library's function does.
pub(crate) fn set_program_realloc(function: *mut c_void) {
    PROGRAM_REALLOC.store(function, Ordering::Relaxed);
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The block is null or live.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(bytes) => {
            let own = PROGRAM_REALLOC.load(Ordering::Relaxed);
            // SAFETY: C fixes the type of `realloc`, and a null pointer becomes `None`.
            let own: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void> =
                unsafe { core::mem::transmute(own) };
            // SAFETY: the program passes null or a live block.
            unsafe { own.unwrap_or(realloc)(block, bytes) }
        }
        None => {
            // SAFETY: the function has no precondition.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: the C library gives each thread a valid pointer to its own errno.
            unsafe { *errno = libc::ENOMEM };
            null_mut()
        }
    }
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The block is null or live, and is not used after the call.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() || bootstrap::owns(block) || needs_own_memory() {
        return;
    }
    if recording() != PreloadRecording::No && !has_no_record(block) {
        // SAFETY: the program passes a live block that it does not use again.
        return unsafe { free_recorded(block) };
    }
    // SAFETY: the real functions are known, and the program passes a live block that it does not use again.
    unsafe { real::free(block) }
    stay_on_the_stack();
}

/// Like [`free`], for a block that may be recorded. It is a separate function, so that `free` itself does not save
/// registers.
#[inline(never)]
unsafe fn free_recorded(block: *mut c_void) {
    forget(block);
    // SAFETY: `free` has made sure that the real functions are looked up, and the program passes a live block that it
    // does not use again.
    unsafe { real::free(block) }
    stay_on_the_stack();
}

/// The usable bytes of a block without a record, which is then from before an attachment; 0 if they are unknown. `None`
/// if the process does not count such blocks now, or if the block belongs to the engine or to another hook.
#[cold]
unsafe fn older_size(block: *mut c_void) -> Option<usize> {
    if recording() != PreloadRecording::Yes || !OLDER_BLOCKS.is_counting() || passes_by() {
        return None;
    }
    // Another allocator than the C library's may have no function for sizes.
    // SAFETY: the caller passes a live block, and the function is of the file that has `malloc`.
    Some(real::size_of(AllocatingFunction::Malloc).map_or(0, |size_of| unsafe { size_of(block) }))
}

/// Like [`free`], in a process that was running before: also counts the blocks that have no record.
pub(crate) unsafe extern "C" fn free_attached(block: *mut c_void) {
    if !block.is_null()
        && recording() == PreloadRecording::Yes
        && !is_recorded(block)
        // SAFETY: the program passes a live block.
        && let Some(usable) = unsafe { older_size(block) }
    {
        OLDER_BLOCKS.count_free(usable);
    }
    // SAFETY: the program passes null or a live block that it does not use again.
    unsafe { free(block) }
    stay_on_the_stack();
}

/// An old name of [`free`].
///
/// # Safety
///
/// The contract of [`free`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the program passes null or a live block that it does not use again.
    unsafe { free(block) }
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// `place` is valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if needs_own_memory() {
        return libc::ENOMEM;
    }
    // SAFETY: the real functions are known, and the program passes a `place` that is valid for a write.
    let error = unsafe { real::posix_memalign(place, align, bytes) };
    if error == 0 {
        // SAFETY: the call succeeded, so it has written the place.
        recorded(AllocatingFunction::PosixMemalign, unsafe { *place }, bytes);
    } else if error == libc::ENOMEM {
        allocation_failed(bytes);
    }
    error
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The function has no precondition.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return bootstrap::alloc(bytes, align);
    }
    // SAFETY: the real functions are known.
    recorded(AllocatingFunction::AlignedAlloc, unsafe { real::aligned_alloc(align, bytes) }, bytes)
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The function has no precondition.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return bootstrap::alloc(bytes, align);
    }
    // SAFETY: the real functions are known.
    recorded(AllocatingFunction::Memalign, unsafe { real::memalign(align, bytes) }, bytes)
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The function has no precondition.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return bootstrap::alloc(bytes, 4096);
    }
    // SAFETY: the real functions are known.
    recorded(AllocatingFunction::Valloc, unsafe { real::valloc(bytes) }, bytes)
}

/// Behaves as C's function of this name.
///
/// # Safety
///
/// The function has no precondition.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    if needs_own_memory() {
        return bytes
            .checked_next_multiple_of(4096)
            .map_or(null_mut(), |bytes| bootstrap::alloc(bytes, 4096));
    }
    // SAFETY: the real functions are known.
    recorded(AllocatingFunction::Pvalloc, unsafe { real::pvalloc(bytes) }, bytes)
}

/// Behaves as glibc's function of this name.
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
