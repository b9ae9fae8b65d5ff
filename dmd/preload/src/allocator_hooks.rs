//! The hooks for allocators that programs link statically. A reference to such an allocator's function is redirected to
//! the entry of a hook. The entry passes the address of the hook's data as the sixth argument, and jumps to the
//! function for all hooks of the same kind ([`Entry`]). So hooks need no code that is generated at run time.
//!
//! As in [`malloc`](crate::malloc), the arguments are passed on unchanged, and the engine forgets a block before the
//! real function frees or moves it.

use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use dmd_redirect::FunctionCall;
use engine::__private::{
    PreloadRecording, SizeOf, begin_move, commit_move, forget, has_no_record, is_engine_thread, recording,
    roll_back_move, within_allocator,
};

use crate::bootstrap;
use crate::malloc::{recorded_with, stay_on_the_stack};

/// The data of a hook: all null until the hook is taken.
#[repr(C)]
pub(crate) struct AllocatorHook {
    /// The function for all hooks of this kind: an [`Entry`].
    function: AtomicPtr<c_void>,
    /// The allocator's function.
    original: AtomicPtr<c_void>,
    /// The allocator's function that returns the usable size of a live block.
    usable_size: AtomicPtr<c_void>,
    unused: usize,
}

/// The number of hooks of the process.
const HOOKS: usize = 160;
/// The size of an entry in bytes.
const ENTRY_BYTES: usize = 16;

static ALL: [AllocatorHook; HOOKS] = [const {
    AllocatorHook {
        function: AtomicPtr::new(null_mut()),
        original: AtomicPtr::new(null_mut()),
        usable_size: AtomicPtr::new(null_mut()),
        unused: 0,
    }
}; HOOKS];

const _: () = assert!(size_of::<AllocatorHook>() == 32 && ENTRY_BYTES == 16, "the assembly has these sizes");

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".balign 16",
    "dmd_allocator_entries:",
    ".set hook, 0",
    ".rept {count}",
    "lea r9, [rip + {all} + hook]",
    "jmp qword ptr [r9]",
    ".balign 16, 0xcc",
    ".set hook, hook + 32",
    ".endr",
    count = const HOOKS,
    all = sym ALL,
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".balign 16",
    "dmd_allocator_entries:",
    ".set hook, 0",
    ".rept {count}",
    "adrp x5, {all} + hook",
    "add x5, x5, :lo12:{all} + hook",
    "ldr x16, [x5]",
    "br x16",
    ".set hook, hook + 32",
    ".endr",
    count = const HOOKS,
    all = sym ALL,
);

unsafe extern "C" {
    /// The code of all entries.
    static dmd_allocator_entries: [[u8; ENTRY_BYTES]; HOOKS];
}

/// The function for hooks of one kind. Functions of allocators have at most five arguments, which are integers and
/// pointers. If the allocator's function has fewer arguments, the values of the other arguments have no meaning.
type Entry = unsafe extern "C" fn(usize, usize, usize, usize, usize, &'static AllocatorHook) -> usize;
type Original = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;

/// Takes a hook for a function of an allocator. Returns the address of the hook's entry; `None` if all hooks are taken,
/// or if hooks do not support such calls. `guarded` means that the function may call `malloc`; the hook of `malloc`
/// must not record these calls. A hook is never given back: the program may have copied the address of its entry.
pub(crate) fn take(
    original: usize,
    call: FunctionCall,
    usable_size: Option<usize>,
    guarded: bool,
) -> Option<usize> {
    let function = entry(call, guarded)? as *mut c_void;
    // Only one thread takes hooks at a time.
    let index = ALL.iter().position(|hook| hook.function.load(Ordering::Relaxed).is_null())?;
    let hook = &ALL[index];
    hook.original.store(with_exposed_provenance_mut(original), Ordering::Relaxed);
    hook.usable_size.store(with_exposed_provenance_mut(usable_size.unwrap_or_default()), Ordering::Relaxed);
    hook.function.store(function, Ordering::Release);
    let entries = (&raw const dmd_allocator_entries).cast::<[u8; ENTRY_BYTES]>();
    Some(entries.wrapping_add(index).expose_provenance())
}

fn entry(call: FunctionCall, guarded: bool) -> Option<Entry> {
    use FunctionCall::{Allocate, AllocateInto, AllocateText, Free, Reallocate, ResizeInPlace};

    Some(match (call, guarded) {
        (Allocate { size: 0, count: None }, false) => allocate::<0, NO_COUNT, false>,
        (Allocate { size: 0, count: None }, true) => allocate::<0, NO_COUNT, true>,
        (Allocate { size: 1, count: None }, false) => allocate::<1, NO_COUNT, false>,
        (Allocate { size: 1, count: Some(0) }, false) => allocate::<1, 0, false>,
        (Allocate { size: 2, count: Some(1) }, false) => allocate::<2, 1, false>,
        (AllocateInto, false) => allocate_into,
        (AllocateText, false) => allocate_text,
        (Free, false) => free::<false>,
        (Free, true) => free::<true>,
        (Reallocate { block: 0, size: 3, count: None, frees_on_failure: false }, true) => {
            reallocate::<0, 3, NO_COUNT, true>
        }
        (Reallocate { block: 0, size: 3, count: None, frees_on_failure: false }, false) => {
            reallocate::<0, 3, NO_COUNT, false>
        }
        (Reallocate { block: 0, size: 2, count: None, frees_on_failure: false }, false) => {
            reallocate::<0, 2, NO_COUNT, false>
        }
        (Reallocate { block: 0, size: 1, count: None, frees_on_failure: false }, false) => {
            reallocate::<0, 1, NO_COUNT, false>
        }
        (Reallocate { block: 0, size: 2, count: Some(1), frees_on_failure: false }, false) => {
            reallocate::<0, 2, 1, false>
        }
        (Reallocate { block: 1, size: 2, count: None, frees_on_failure: false }, false) => {
            reallocate::<1, 2, NO_COUNT, false>
        }
        (Reallocate { block: 0, size: 1, count: None, frees_on_failure: true }, false) => reallocate_or_free,
        (ResizeInPlace, false) => resize_in_place,
        _ => return None,
    })
}

/// The index of the argument with the count, for a function without such an argument.
const NO_COUNT: usize = usize::MAX;

impl AllocatorHook {
    /// Calls the allocator's function.
    ///
    /// # Safety
    ///
    /// The contract of the allocator's function.
    #[inline(always)]
    unsafe fn call<const GUARDED: bool>(&self, arguments: [usize; 5]) -> usize {
        let original = self.original.load(Ordering::Relaxed);
        // SAFETY: `take` stored the address of a function with at most five arguments. The function reads only its own
        // arguments, and the result of a function that returns nothing is not used.
        let original: Original = unsafe { core::mem::transmute(original) };
        let [a, b, c, d, e] = arguments;
        // SAFETY: the program passes these arguments to the function.
        let call = || unsafe { original(a, b, c, d, e) };
        if GUARDED { within_allocator(call) } else { call() }
    }

    /// The function for the usable size of a live block.
    #[inline(always)]
    fn size_of(&self) -> Option<SizeOf> {
        // SAFETY: `take` stored null or the address of a function of this type.
        unsafe { core::mem::transmute(self.usable_size.load(Ordering::Relaxed)) }
    }

    #[inline(always)]
    fn recorded(&self, block: usize, bytes: usize) -> usize {
        if !is_engine_thread() {
            recorded_with(|| self.size_of(), with_exposed_provenance_mut(block), bytes);
        }
        block
    }
}

#[inline(always)]
fn bytes_of<const SIZE: usize, const COUNT: usize>(arguments: [usize; 5]) -> usize {
    // If the product overflows, the allocator returns null, which is not recorded.
    if COUNT == NO_COUNT { arguments[SIZE] } else { arguments[SIZE].saturating_mul(arguments[COUNT]) }
}

/// Whether the engine may have a record of this block.
#[inline(always)]
fn may_be_recorded(block: usize) -> bool {
    block != 0 && recording() != PreloadRecording::No && !has_no_record(with_exposed_provenance_mut(block))
}

unsafe extern "C" fn allocate<const SIZE: usize, const COUNT: usize, const GUARDED: bool>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let bytes = bytes_of::<SIZE, COUNT>([a, b, c, d, e]);
    // The C library calls a program's `malloc` on any thread.
    if is_engine_thread() {
        let align = if SIZE == 1 && COUNT == NO_COUNT { a } else { 1 };
        return bootstrap::alloc(bytes, align).expose_provenance();
    }
    // SAFETY: the program calls the allocator's function with these arguments.
    let block = unsafe { hook.call::<GUARDED>([a, b, c, d, e]) };
    recorded_with(|| hook.size_of(), with_exposed_provenance_mut(block), bytes);
    block
}

unsafe extern "C" fn allocate_into(
    place: usize,
    align: usize,
    bytes: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    // SAFETY: the program calls the allocator's function with these arguments.
    let error = unsafe { hook.call::<false>([place, align, bytes, d, e]) };
    // The function returns an `int`.
    if error as u32 == 0 {
        // SAFETY: the call succeeded, so it has written the place.
        hook.recorded(unsafe { *with_exposed_provenance::<usize>(place) }, bytes);
    }
    error
}

unsafe extern "C" fn allocate_text(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    // SAFETY: the program calls the allocator's function with these arguments.
    let text = unsafe { hook.call::<false>([a, b, c, d, e]) };
    if text == 0 {
        return text;
    }
    // SAFETY: the function returns null or a text that ends in 0.
    let bytes = unsafe { libc::strlen(with_exposed_provenance(text)) };
    hook.recorded(text, bytes + 1)
}

unsafe extern "C" fn free<const GUARDED: bool>(
    block: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    if bootstrap::owns(with_exposed_provenance(block)) {
        return 0;
    }
    if may_be_recorded(block) {
        forget(with_exposed_provenance_mut(block));
    }
    // SAFETY: the program calls the allocator's function with these arguments.
    let result = unsafe { hook.call::<GUARDED>([block, b, c, d, e]) };
    stay_on_the_stack();
    result
}

/// Whether a call with this new size that returned null has left the block as it was.
type LeavesBlock = fn(usize) -> bool;

#[inline(always)]
unsafe fn reallocate_by<const GUARDED: bool>(
    block: usize,
    bytes: usize,
    leaves: LeavesBlock,
    arguments: [usize; 5],
    hook: &'static AllocatorHook,
) -> usize {
    // The call fails: the block may be one of `bootstrap`, and the allocator's function does not know it.
    if is_engine_thread() {
        return 0;
    }
    if !may_be_recorded(block) {
        // SAFETY: the program calls the allocator's function with these arguments.
        return hook.recorded(unsafe { hook.call::<GUARDED>(arguments) }, bytes);
    }
    let begun = begin_move(with_exposed_provenance_mut(block));
    // SAFETY: as above.
    let moved = unsafe { hook.call::<GUARDED>(arguments) };
    if moved == 0 && leaves(bytes) {
        roll_back_move(begun);
        return moved;
    }
    commit_move(begun);
    hook.recorded(moved, bytes)
}

unsafe extern "C" fn reallocate<
    const BLOCK: usize,
    const SIZE: usize,
    const COUNT: usize,
    const GUARDED: bool,
>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [a, b, c, d, e];
    let bytes = bytes_of::<SIZE, COUNT>(arguments);
    // SAFETY: the program calls the allocator's function with these arguments.
    unsafe { reallocate_by::<GUARDED>(arguments[BLOCK], bytes, |bytes| bytes != 0, arguments, hook) }
}

unsafe extern "C" fn reallocate_or_free(
    block: usize,
    bytes: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    // SAFETY: the program calls the allocator's function with these arguments.
    unsafe { reallocate_by::<false>(block, bytes, |_| false, [block, bytes, c, d, e], hook) }
}

unsafe extern "C" fn resize_in_place(
    block: usize,
    bytes: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [block, bytes, c, d, e];
    if !may_be_recorded(block) {
        // SAFETY: the program calls the allocator's function with these arguments.
        return unsafe { hook.call::<false>(arguments) };
    }
    let begun = begin_move(with_exposed_provenance_mut(block));
    // SAFETY: as above.
    let usable = unsafe { hook.call::<false>(arguments) };
    if usable < bytes {
        roll_back_move(begun);
    } else {
        commit_move(begun);
        hook.recorded(block, bytes);
    }
    usable
}
