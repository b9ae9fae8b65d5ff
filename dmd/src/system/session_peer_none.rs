//! Only Linux has sessions of tracking that peers begin.

use core::ffi::c_int;

/// Does nothing.
pub(crate) extern "C" fn set(_: c_int) {}
