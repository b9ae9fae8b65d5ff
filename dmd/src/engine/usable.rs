//! The usable bytes of a new block.

use core::ffi::c_void;

/// A function of the program's allocator that returns the usable bytes of one of its blocks.
pub type SizeOf = unsafe extern "C" fn(*mut c_void) -> usize;

/// The usable bytes of a new block, or a function that returns them. The function is called only if the bytes are
/// needed.
#[derive(Clone, Copy)]
pub(crate) struct UsableBytes {
    bytes: usize,
    by: Option<SizeOf>,
}

impl UsableBytes {
    /// `size_of` returns the usable bytes; if `size_of` is `None`, they are `bytes`.
    ///
    /// # Safety
    ///
    /// [`Engine::record`](super::Engine::record) gets this value together with a block that is valid for `size_of`.
    #[inline(always)]
    pub(crate) unsafe fn by(size_of: Option<SizeOf>, bytes: usize) -> Self {
        Self { bytes, by: size_of }
    }

    #[inline(always)]
    pub(super) fn ask(self, address: usize) -> usize {
        match self.by {
            None => self.bytes,
            // SAFETY: the caller of `by` guarantees that the block is valid for this function.
            Some(size_of) => unsafe { size_of(core::ptr::with_exposed_provenance_mut(address)) },
        }
    }
}
