//! Stubs: only Linux has sessions of tracking with peers.

use core::ffi::c_int;

/// Starts no session. Returns 0, as for a session that cannot start.
pub(crate) extern "C" fn set(_: c_int) -> c_int {
    0
}
