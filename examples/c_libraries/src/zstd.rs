//! zstd takes two functions for each context, if its feature `experimental` is on.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use memory_reporter::counters::{CounterSite, CountingMalloc, MemoryCounter};
use zstd_sys::{ZSTD_CCtx, ZSTD_customMem};

static COUNTER: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!("explicit/zstd", Heap, Bytes, COUNTER.bytes(), "Memory used by zstd.");

struct Zstd;

impl CounterSite for Zstd {
    const COUNTER: &'static MemoryCounter = &COUNTER;
}

type Malloc = CountingMalloc<Zstd>;

unsafe extern "C" fn allocate(_: *mut c_void, bytes: usize) -> *mut c_void {
    Malloc::malloc(bytes)
}

unsafe extern "C" fn free(_: *mut c_void, pointer: *mut c_void) {
    // SAFETY: zstd frees each block of `allocate` once.
    unsafe { Malloc::free(pointer) }
}

/// A compression context.
pub struct Compressor {
    context: NonNull<ZSTD_CCtx>,
    level: i32,
}

impl Compressor {
    pub fn new(level: i32) -> Self {
        let functions =
            ZSTD_customMem { customAlloc: Some(allocate), customFree: Some(free), opaque: null_mut() };
        // SAFETY: the functions live as long as the program, and behave like malloc and free.
        let context = unsafe { zstd_sys::ZSTD_createCCtx_advanced(functions) };
        Self { context: NonNull::new(context).expect("there is memory for a context"), level }
    }

    /// Compresses a text. Returns the number of compressed bytes.
    pub fn compress(&self, text: &[u8]) -> usize {
        // SAFETY: `ZSTD_compressBound` has no precondition.
        let mut out = vec![0_u8; unsafe { zstd_sys::ZSTD_compressBound(text.len()) }];
        // SAFETY: the context is live, and each buffer is passed with its length.
        let written = unsafe {
            zstd_sys::ZSTD_compressCCtx(
                self.context.as_ptr(),
                out.as_mut_ptr().cast(),
                out.len(),
                text.as_ptr().cast(),
                text.len(),
                self.level,
            )
        };
        // SAFETY: `ZSTD_isError` has no precondition.
        assert_eq!(unsafe { zstd_sys::ZSTD_isError(written) }, 0);
        written
    }

    /// The bytes of the context, as zstd states them.
    pub fn size(&self) -> usize {
        // SAFETY: the context is live.
        unsafe { zstd_sys::ZSTD_sizeof_CCtx(self.context.as_ptr()) }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the context is live, and no code uses it after the call.
        unsafe { zstd_sys::ZSTD_freeCCtx(self.context.as_ptr()) };
    }
}
