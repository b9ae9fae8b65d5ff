//! Owned text.

use core::alloc::Layout;
use std::ffi::{CString, OsString};
use std::path::PathBuf;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

macro_rules! text {
    ($($type:ty, $text:ident => $pointer:expr, $capacity:expr;)*) => {$(
        impl MallocSizeOf for $type {
            #[inline]
            #[allow(unsafe_code, reason = "passes the start of the text's block to `ops.block`")]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                let $text = self;
                // SAFETY: std allocates no text of more than `isize::MAX` bytes.
                let layout = unsafe { Layout::from_size_align_unchecked($capacity, 1) };
                // SAFETY: the text starts its block, which was allocated for its capacity.
                unsafe { ops.block::<u8>($pointer, layout) }
            }
        }
    )*};
}
text!(
    String, text => text.as_ptr(), text.capacity();
    OsString, text => text.as_encoded_bytes().as_ptr(), text.capacity();
    PathBuf, text => text.as_os_str().as_encoded_bytes().as_ptr(), text.capacity();
    CString, text => text.as_bytes_with_nul().as_ptr(), text.as_bytes_with_nul().len();
);
