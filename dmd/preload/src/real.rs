//! The functions that the program would have called without this library.
//!
//! Looked up by name behind this library, and not by glibc's own names for its functions: another
//! allocator may stand between.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

type Function = AtomicPtr<c_void>;

/// One pointer for each function; null if the program has none.
pub(crate) struct Real {
    state: AtomicU8,
    malloc: Function,
    calloc: Function,
    realloc: Function,
    free: Function,
    posix_memalign: Function,
    aligned_alloc: Function,
    memalign: Function,
    valloc: Function,
    pvalloc: Function,
    malloc_usable_size: Function,
}

const UNKNOWN: u8 = 0;
const LOOKING: u8 = 1;
const KNOWN: u8 = 2;

const fn unknown() -> Function {
    AtomicPtr::new(core::ptr::null_mut())
}

pub(crate) static REAL: Real = Real {
    state: AtomicU8::new(UNKNOWN),
    malloc: unknown(),
    calloc: unknown(),
    realloc: unknown(),
    free: unknown(),
    posix_memalign: unknown(),
    aligned_alloc: unknown(),
    memalign: unknown(),
    valloc: unknown(),
    pvalloc: unknown(),
    malloc_usable_size: unknown(),
};

/// Whether the functions are known; looks them up at the first call. No: somebody allocates while they
/// are being looked up.
#[inline(always)]
pub(crate) fn known() -> bool {
    REAL.state.load(Ordering::Acquire) == KNOWN || REAL.look_up()
}

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// # Safety
        ///
        /// As the C function's; the functions are [`known`].
        #[inline(always)]
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            let function = REAL.$name.load(Ordering::Relaxed);
            // SAFETY: a function of this name has this type; one that is missing was not found by the
            // program either.
            let function: unsafe extern "C" fn($($type),*) -> $result = unsafe { core::mem::transmute(function) };
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        }
    )*};
}

forward! {
    malloc(bytes: usize) -> *mut c_void;
    calloc(count: usize, bytes: usize) -> *mut c_void;
    realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    free(block: *mut c_void) -> ();
    posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int;
    aligned_alloc(align: usize, bytes: usize) -> *mut c_void;
    memalign(align: usize, bytes: usize) -> *mut c_void;
    valloc(bytes: usize) -> *mut c_void;
    pvalloc(bytes: usize) -> *mut c_void;
    malloc_usable_size(block: *mut c_void) -> usize;
}

impl Real {
    #[cold]
    fn look_up(&self) -> bool {
        let start = self.state.compare_exchange(UNKNOWN, LOOKING, Ordering::AcqRel, Ordering::Acquire);
        if start.is_err() {
            return self.state.load(Ordering::Acquire) == KNOWN;
        }
        let functions: [(&Function, &CStr); 10] = [
            (&self.malloc, c"malloc"),
            (&self.calloc, c"calloc"),
            (&self.realloc, c"realloc"),
            (&self.free, c"free"),
            (&self.posix_memalign, c"posix_memalign"),
            (&self.aligned_alloc, c"aligned_alloc"),
            (&self.memalign, c"memalign"),
            (&self.valloc, c"valloc"),
            (&self.pvalloc, c"pvalloc"),
            (&self.malloc_usable_size, c"malloc_usable_size"),
        ];
        for (place, name) in functions {
            // SAFETY: a name that ends in 0.
            place.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }, Ordering::Relaxed);
        }
        self.state.store(KNOWN, Ordering::Release);
        true
    }
}
