//! The thread-locals of engine threads. The loader makes one block of thread-locals before the first engine thread
//! starts; each engine thread has a copy of this block.
//!
//! An engine thread must not request a block from the loader: that takes a lock of the C library.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::system::memory;
use crate::system::slot::slot;

/// The start of the block that the loader made; 0 while there is no block.
static START: AtomicUsize = AtomicUsize::new(0);
/// The number of bytes of the block on each side of the thread pointer.
static SIDE: AtomicUsize = AtomicUsize::new(0);
/// The size in bytes of the loader's vector of the block's parts.
static VECTOR: AtomicUsize = AtomicUsize::new(0);

const PAGE: usize = 4096;
/// An upper limit for the size of the C library's own data of a thread.
const OF_THE_C_LIBRARY: usize = 16 << 10;
const WORD: usize = size_of::<usize>();
/// An element of the loader's vector: an address or a count, and one more word.
const ELEMENT: usize = 2 * WORD;

/// The position of the vector in the C library's data of a thread, in words from the thread pointer.
#[cfg(target_arch = "x86_64")]
const VECTOR_AT: usize = 1;
#[cfg(target_arch = "aarch64")]
const VECTOR_AT: usize = 0;

/// Lets the loader make the block. Called once: at the start of the process, or by the first attachment. Does nothing
/// if the loader has no function for this.
pub(super) fn prepare() {
    // SAFETY: the name ends in 0.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_allocate_tls".as_ptr()) };
    if function.is_null() {
        // SAFETY: the function has no precondition. It removes the error, so that the program does not get it.
        unsafe { libc::dlerror() };
        return;
    }
    // SAFETY: the loader's function of this name takes a place for the block, or null, and returns the place.
    let allocate: unsafe extern "C" fn(*mut c_void) -> *mut c_void =
        unsafe { core::mem::transmute(function) };
    let mut side = OF_THE_C_LIBRARY;
    // SAFETY: the data is the sum that `add_size` expects, and the loader uses both pointers only during the call.
    unsafe { libc::dl_iterate_phdr(Some(add_size), (&raw mut side).cast()) };
    let side = side.next_multiple_of(PAGE);
    let block = memory::map_for_dump(2 * side);
    if block.is_null() {
        return;
    }
    let pointer = block.wrapping_add(side);
    // While this field is set, allocations of the loader go to the engine's memory: they are not blocks of the program.
    slot().engine_thread.set(u16::MAX);
    // SAFETY: the place has room on both sides for all thread-locals and for the C library's data.
    let made = unsafe { allocate(pointer.cast()) };
    slot().engine_thread.set(0);
    let vector = word(pointer, VECTOR_AT);
    if made != pointer.cast() || vector == 0 {
        return;
    }
    let count = word(at(vector - ELEMENT), 0);
    VECTOR.store((count + 2) * ELEMENT, Ordering::Relaxed);
    SIDE.store(side, Ordering::Relaxed);
    START.store(block.expose_provenance(), Ordering::Release);
}

/// Adds the maximum size that the thread-locals of a module need.
unsafe extern "C" fn add_size(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `prepare` passes its sum, and waits during the call.
    let sum = unsafe { &mut *data.cast::<usize>() };
    if !info.dlpi_phdr.is_null() {
        // SAFETY: the loader's record has this many headers.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        for header in headers.iter().filter(|header| header.p_type == libc::PT_TLS) {
            *sum += header.p_memsz as usize + 2 * header.p_align as usize;
        }
    }
    0
}

/// Whether engine threads can have thread-locals.
pub(super) fn are_prepared() -> bool {
    START.load(Ordering::Acquire) != 0
}

/// The size of a copy in bytes; 0 if there is no block.
pub(super) fn bytes() -> usize {
    2 * SIDE.load(Ordering::Relaxed) + VECTOR.load(Ordering::Relaxed)
}

/// Makes a copy, and returns its thread pointer.
///
/// # Safety
///
/// The place has [`bytes`] bytes and starts at a page. No thread uses it.
pub(super) unsafe fn copy_to(place: *mut u8) -> usize {
    let (block, side) = (at(START.load(Ordering::Acquire)), SIDE.load(Ordering::Relaxed));
    let vector_bytes = VECTOR.load(Ordering::Relaxed);
    // SAFETY: the place and the loader's block have this many bytes, and the block does not change any more.
    unsafe { place.copy_from_nonoverlapping(block, 2 * side) };
    let pointer = place.wrapping_add(side);
    let old = at(word(pointer, VECTOR_AT) - ELEMENT);
    let vector = place.wrapping_add(2 * side);
    // SAFETY: the vector has this many bytes, and the place has room for them behind the block.
    unsafe { vector.copy_from_nonoverlapping(old, vector_bytes) };
    // The first element is the length, the second is the generation. With the last possible generation, the loader
    // never considers the vector outdated. For an outdated vector it would call `realloc`, which does not own this
    // memory.
    set_word(vector.wrapping_add(ELEMENT), 0, usize::MAX);
    for element in (2 * ELEMENT..vector_bytes).step_by(ELEMENT) {
        let address = word(vector.wrapping_add(element), 0);
        let offset = address.wrapping_sub(block.addr());
        if offset < 2 * side {
            set_word(vector.wrapping_add(element), 0, place.addr() + offset);
        }
    }
    set_word(pointer, VECTOR_AT, vector.addr() + ELEMENT);
    #[cfg(target_arch = "x86_64")]
    {
        // The C library's data starts with its own address. Words 5 and 6 are the stack canary and the pointer mask.
        set_word(pointer, 0, pointer.addr());
        set_word(pointer, 2, pointer.addr());
        set_word(pointer, 3, 1);
        let own = at(crate::system::slot::thread_pointer());
        for number in [5, 6] {
            set_word(pointer, number, word(own, number));
        }
    }
    pointer.expose_provenance()
}

fn at(address: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(address)
}

fn word(start: *mut u8, number: usize) -> usize {
    // SAFETY: all callers pass an aligned address in a block, its vector or the C library's data of a thread.
    unsafe { start.cast::<usize>().wrapping_add(number).read() }
}

fn set_word(start: *mut u8, number: usize, value: usize) {
    // SAFETY: all callers pass an aligned address in a copy, which no thread uses yet.
    unsafe { start.cast::<usize>().wrapping_add(number).write(value) };
}
