//! OpenSSL takes three functions for the whole process, before its first allocation. Each function also gets the file
//! and line of its caller in OpenSSL's source.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::NonNull;

use memory_reporter::counters::{CounterSite, CountingMalloc, MemoryCounter};

static COUNTER: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!(
    "explicit/openssl",
    Heap,
    Bytes,
    COUNTER.bytes(),
    "Memory used by OpenSSL."
);

struct Openssl;

impl CounterSite for Openssl {
    const COUNTER: &'static MemoryCounter = &COUNTER;
}

type Malloc = CountingMalloc<Openssl>;

type MallocFunction = unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void;
type ReallocFunction = unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void;
type FreeFunction = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

#[link(name = "crypto")]
unsafe extern "C" {
    fn CRYPTO_set_mem_functions(
        malloc: MallocFunction,
        realloc: ReallocFunction,
        free: FreeFunction,
    ) -> c_int;
    fn BIO_s_mem() -> *const c_void;
    fn BIO_new(method: *const c_void) -> *mut c_void;
    fn BIO_write(bio: *mut c_void, data: *const c_void, bytes: c_int) -> c_int;
    fn BIO_free(bio: *mut c_void) -> c_int;
}

unsafe extern "C" fn malloc(bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if bytes == 0 { core::ptr::null_mut() } else { Malloc::malloc(bytes) }
}

unsafe extern "C" fn realloc(pointer: *mut c_void, bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if bytes == 0 {
        // SAFETY: OpenSSL passes a live block of these functions, or null.
        unsafe { Malloc::free(pointer) };
        return core::ptr::null_mut();
    }
    // SAFETY: OpenSSL passes a live block of these functions, or null.
    unsafe { Malloc::realloc(pointer, bytes) }
}

unsafe extern "C" fn free(pointer: *mut c_void, _: *const c_char, _: c_int) {
    // SAFETY: OpenSSL passes a live block of these functions, or null.
    unsafe { Malloc::free(pointer) }
}

/// Makes OpenSSL allocate through the counter.
pub fn use_counting_malloc() {
    // SAFETY: the functions behave like malloc, realloc and free. OpenSSL rejects them after its first allocation.
    let accepted = unsafe { CRYPTO_set_mem_functions(malloc, realloc, free) };
    assert_eq!(accepted, 1, "OpenSSL has allocated before");
}

/// A buffer of OpenSSL that contains bytes.
pub struct Bytes(NonNull<c_void>);

impl Bytes {
    pub fn new(bytes: usize) -> Self {
        let data = vec![1_u8; bytes];
        // SAFETY: `BIO_s_mem` has no precondition.
        let method = unsafe { BIO_s_mem() };
        // SAFETY: `method` is OpenSSL's method for buffers in memory.
        let bio = NonNull::new(unsafe { BIO_new(method) }).expect("there is memory for a buffer");
        let wanted = c_int::try_from(bytes).expect("a small buffer");
        // SAFETY: the buffer is live, and `data` has this many bytes.
        let written = unsafe { BIO_write(bio.as_ptr(), data.as_ptr().cast(), wanted) };
        assert_eq!(written, wanted);
        Self(bio)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: the buffer is live, and no code uses it after the call.
        unsafe { BIO_free(self.0.as_ptr()) };
    }
}
