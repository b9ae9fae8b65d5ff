//! Stubs: only Linux has sessions of tracking with peers.

use core::ffi::c_int;

/// Does nothing.
pub(crate) extern "C" fn set(_: c_int) {}
