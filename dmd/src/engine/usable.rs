//! The usable bytes of a new block.

use core::ffi::c_void;

/// A function of the program's allocator that takes one of its blocks.
pub(crate) type SizeOf = unsafe extern "C" fn(*mut c_void) -> usize;

/// The usable bytes of a new block, or the function that knows them, which is only called if they are needed.
#[derive(Clone, Copy)]
pub(crate) struct UsableBytes {
    bytes: usize,
    by: Option<SizeOf>,
}

impl UsableBytes {
    /// `size_of` gives the bytes; without it, `bytes` does.
    ///
    /// # Safety
    ///
    /// [`Engine::record`](super::Engine::record) gets this value with a block that `size_of` takes.
    #[inline(always)]
    pub(crate) unsafe fn by(size_of: Option<SizeOf>, bytes: usize) -> Self {
        Self { bytes, by: size_of }
    }

    #[inline(always)]
    pub(super) fn ask(self, address: usize) -> usize {
        match self.by {
            None => self.bytes,
            // SAFETY: the caller of `by` promised that this function takes the block of this value.
            Some(size_of) => unsafe { size_of(core::ptr::with_exposed_provenance_mut(address)) },
        }
    }
}
