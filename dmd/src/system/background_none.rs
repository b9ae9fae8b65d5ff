//! What the engine knows of threads where it makes no recordings.

/// Only recordings name threads.
pub(crate) fn system_id() -> u32 {
    0
}
