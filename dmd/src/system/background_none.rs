//! Information about threads on systems without recordings.

/// Returns 0: only recordings need this number.
pub(crate) fn system_id() -> u32 {
    0
}
