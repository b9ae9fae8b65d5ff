//! Time stamps as Firefox gives them: milliseconds since the process started.

use std::sync::OnceLock;

use crate::platform;

/// The time now.
pub(super) fn now() -> f64 {
    timestamp(platform::monotonic_nanoseconds())
}

/// The time stamp of a moment on the system's monotonic clock, in nanoseconds.
pub(super) fn timestamp(nanoseconds: u64) -> f64 {
    static START: OnceLock<u64> = OnceLock::new();
    let start =
        *START.get_or_init(|| platform::process_start().unwrap_or_else(platform::monotonic_nanoseconds));
    nanoseconds.saturating_sub(start) as f64 / 1e6
}
