//! Suspends the tag of a thread while code of this crate runs.

use crate::allocator::tags::{self, NO_TAG, TagNumber};

/// Suspends the tag of its thread until it is dropped.
pub(crate) struct TagPause(TagNumber);

impl TagPause {
    pub(crate) fn new() -> Self {
        let before = tags::current();
        tags::set_current(NO_TAG);
        Self(before)
    }
}

impl Drop for TagPause {
    fn drop(&mut self) {
        tags::set_current(self.0);
    }
}
