//! The hooks for allocators that programs link statically. A reference to such an allocator's function is redirected to
//! the entry of a hook. The entry passes the address of the hook's data as the sixth argument, and jumps to the
//! function for all hooks of the same kind ([`Entry`]). So hooks need no code that is generated at run time.
//!
//! As in [`malloc`](crate::malloc), the arguments are passed on unchanged, and the engine forgets a block before the
//! real function frees or moves it.

use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

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
    /// The places of the arguments, for an [`Entry`] that serves several kinds of functions.
    places: ArgumentPlaces,
}

/// The places of arguments, counted from 0.
#[repr(C)]
struct ArgumentPlaces {
    /// The block. For a function that returns a text: the room for it.
    block: AtomicU8,
    /// The size in bytes, or the size of one element.
    size: AtomicU8,
    /// The number of elements.
    count: AtomicU8,
    /// Whether the function frees the block if it returns null.
    frees_on_failure: AtomicBool,
}

/// The place of an argument that the function does not have.
const ABSENT: u8 = u8::MAX;

/// The number of hooks of the process.
const HOOKS: usize = 160;
/// The size of an entry in bytes.
const ENTRY_BYTES: usize = 16;

static ALL: [AllocatorHook; HOOKS] = [const {
    AllocatorHook {
        function: AtomicPtr::new(null_mut()),
        original: AtomicPtr::new(null_mut()),
        usable_size: AtomicPtr::new(null_mut()),
        places: ArgumentPlaces {
            block: AtomicU8::new(0),
            size: AtomicU8::new(0),
            count: AtomicU8::new(0),
            frees_on_failure: AtomicBool::new(false),
        },
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
/// pointers. If the allocator's function has fewer arguments, the values of the other arguments have no meaning. The
/// operator `new` of C++ may throw.
type Entry = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, &'static AllocatorHook) -> usize;
type Original = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize) -> usize;

/// Takes a hook for a function of an allocator. Returns the address of the hook's entry; `None` if all hooks are taken.
/// `guarded` means that the function may call `malloc`; the hook of `malloc` must not record these calls. A hook to which
/// a reference leads is never given back: the program may have copied the address of its entry.
pub(crate) fn take(
    original: usize,
    call: FunctionCall,
    usable_size: Option<usize>,
    guarded: bool,
) -> Option<usize> {
    let function = entry(call, guarded) as *mut c_void;
    // Only one thread takes hooks at a time.
    let index = ALL.iter().position(|hook| hook.function.load(Ordering::Relaxed).is_null())?;
    let hook = &ALL[index];
    hook.original.store(with_exposed_provenance_mut(original), Ordering::Relaxed);
    hook.usable_size.store(with_exposed_provenance_mut(usable_size.unwrap_or_default()), Ordering::Relaxed);
    hook.places.set(call);
    hook.function.store(function, Ordering::Release);
    let entries = (&raw const dmd_allocator_entries).cast::<[u8; ENTRY_BYTES]>();
    Some(entries.wrapping_add(index).expose_provenance())
}

/// Gives back a hook to which no reference has led.
pub(crate) fn give_back(entry: usize) {
    let entries = (&raw const dmd_allocator_entries).expose_provenance();
    if let Some(hook) = ALL.get(entry.wrapping_sub(entries) / ENTRY_BYTES) {
        hook.function.store(null_mut(), Ordering::Release);
    }
}

fn entry(call: FunctionCall, guarded: bool) -> Entry {
    use FunctionCall::{
        Allocate, AllocateInto, AllocateText, Free, Reallocate, ReallocateInto, ResizeInPlace,
    };

    match (call, guarded) {
        (Allocate { size: 0, count: None }, false) => allocate::<0, false>,
        (Allocate { size: 0, count: None }, true) => allocate::<0, true>,
        (Allocate { size: 1, count: None }, false) => allocate::<1, false>,
        (Allocate { .. }, false) => allocate_by_places::<false>,
        (Allocate { .. }, true) => allocate_by_places::<true>,
        (AllocateInto, _) => allocate_into,
        (AllocateText { .. }, _) => allocate_text,
        (Free, false) => free::<false>,
        (Free, true) => free::<true>,
        (Reallocate { .. }, false) => reallocate::<false>,
        (Reallocate { .. }, true) => reallocate::<true>,
        (ReallocateInto, _) => reallocate_into,
        (ResizeInPlace, _) => resize_in_place,
    }
}

impl ArgumentPlaces {
    fn set(&self, call: FunctionCall) {
        let (block, size, count) = match call {
            FunctionCall::Allocate { size, count } => (ABSENT, size, count),
            FunctionCall::Reallocate { block, size, count, .. } => (block, size, count),
            FunctionCall::AllocateText { room } => (room.unwrap_or(ABSENT), ABSENT, None),
            _ => (ABSENT, ABSENT, None),
        };
        self.block.store(block, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
        self.count.store(count.unwrap_or(ABSENT), Ordering::Relaxed);
        let frees_on_failure = matches!(call, FunctionCall::Reallocate { frees_on_failure: true, .. });
        self.frees_on_failure.store(frees_on_failure, Ordering::Relaxed);
    }

    /// The argument at a place.
    #[inline(always)]
    fn argument(place: &AtomicU8, arguments: &[usize; 5]) -> Option<usize> {
        arguments.get(usize::from(place.load(Ordering::Relaxed))).copied()
    }

    /// The bytes that a call requests.
    #[inline(always)]
    fn bytes(&self, arguments: &[usize; 5]) -> usize {
        let size = Self::argument(&self.size, arguments).unwrap_or_default();
        // If the product overflows, the allocator returns null, which is not recorded.
        size.saturating_mul(Self::argument(&self.count, arguments).unwrap_or(1))
    }
}

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

/// Whether the engine may have a record of this block.
#[inline(always)]
fn may_be_recorded(block: usize) -> bool {
    block != 0 && recording() != PreloadRecording::No && !has_no_record(with_exposed_provenance_mut(block))
}

/// A function with the size in argument `SIZE`.
unsafe extern "C-unwind" fn allocate<const SIZE: usize, const GUARDED: bool>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [a, b, c, d, e];
    let bytes = arguments[SIZE];
    // SAFETY: the program calls the allocator's function with these arguments.
    unsafe { allocate_bytes::<GUARDED>(bytes, if SIZE == 1 { a } else { 1 }, arguments, hook) }
}

unsafe extern "C-unwind" fn allocate_by_places<const GUARDED: bool>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [a, b, c, d, e];
    // SAFETY: the program calls the allocator's function with these arguments.
    unsafe { allocate_bytes::<GUARDED>(hook.places.bytes(&arguments), 1, arguments, hook) }
}

#[inline(always)]
unsafe fn allocate_bytes<const GUARDED: bool>(
    bytes: usize,
    align: usize,
    arguments: [usize; 5],
    hook: &'static AllocatorHook,
) -> usize {
    // The C library calls a program's `malloc` on any thread.
    if is_engine_thread() {
        return bootstrap::alloc(bytes, align).expose_provenance();
    }
    // SAFETY: the program calls the allocator's function with these arguments.
    let block = unsafe { hook.call::<GUARDED>(arguments) };
    recorded_with(|| hook.size_of(), with_exposed_provenance_mut(block), bytes);
    block
}

unsafe extern "C-unwind" fn allocate_into(
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

unsafe extern "C-unwind" fn allocate_text(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [a, b, c, d, e];
    // SAFETY: the program calls the allocator's function with these arguments.
    let text = unsafe { hook.call::<false>(arguments) };
    if text == 0 || ArgumentPlaces::argument(&hook.places.block, &arguments).is_some_and(|room| room != 0) {
        return text;
    }
    // SAFETY: the function returns null or a text that ends in 0.
    let bytes = unsafe { libc::strlen(with_exposed_provenance(text)) };
    hook.recorded(text, bytes + 1)
}

unsafe extern "C-unwind" fn free<const GUARDED: bool>(
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

unsafe extern "C-unwind" fn reallocate<const GUARDED: bool>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [a, b, c, d, e];
    let bytes = hook.places.bytes(&arguments);
    let block = ArgumentPlaces::argument(&hook.places.block, &arguments).unwrap_or_default();
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
    if moved == 0 && bytes != 0 && !hook.places.frees_on_failure.load(Ordering::Relaxed) {
        roll_back_move(begun);
        return moved;
    }
    commit_move(begun);
    hook.recorded(moved, bytes)
}

unsafe extern "C-unwind" fn reallocate_into(
    place: usize,
    count: usize,
    size: usize,
    d: usize,
    e: usize,
    hook: &'static AllocatorHook,
) -> usize {
    let arguments = [place, count, size, d, e];
    let read = || {
        if place == 0 {
            // The function refuses it.
            return 0;
        }
        // SAFETY: the program passes the address of a word with a block.
        unsafe { *with_exposed_provenance::<usize>(place) }
    };
    let block = read();
    let begun = may_be_recorded(block).then(|| begin_move(with_exposed_provenance_mut(block)));
    // SAFETY: the program calls the allocator's function with these arguments.
    let error = unsafe { hook.call::<false>(arguments) };
    let has_succeeded = error as u32 == 0;
    if let Some(begun) = begun {
        if has_succeeded { commit_move(begun) } else { roll_back_move(begun) }
    }
    if has_succeeded {
        hook.recorded(read(), count.saturating_mul(size));
    }
    error
}

unsafe extern "C-unwind" fn resize_in_place(
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
