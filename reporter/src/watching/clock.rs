//! Time stamps in Firefox's unit: milliseconds since the process started.

use std::sync::OnceLock;

use crate::platform;

/// The current time.
pub(super) fn now() -> f64 {
    timestamp(platform::monotonic_nanoseconds())
}

/// The time stamp of a moment. `nanoseconds` is the moment on the system's monotonic clock.
pub(super) fn timestamp(nanoseconds: u64) -> f64 {
    static START: OnceLock<u64> = OnceLock::new();
    let start =
        *START.get_or_init(|| platform::process_start().unwrap_or_else(platform::monotonic_nanoseconds));
    nanoseconds.saturating_sub(start) as f64 / 1e6
}
