//! The functions that the hooks of mappings in `libdmd.so` call.

use super::with_caller::with_caller;
use crate::engine::ENGINE;
use crate::tables::mappings::RemovedRanges;
use crate::tables::stack::Caller;

with_caller!(
    /// Records a mapping.
    record_with_caller(start: usize, bytes: usize, is_file: bool) => record_for, ["rcx", "r8"], ["x3", "x4"]
);

extern "C" fn record_for(start: usize, bytes: usize, is_file: bool, place: usize, fp: usize) {
    ENGINE.record_mapping(start, bytes, is_file, Caller::new(place, fp));
}

/// Records a mapping. The hook itself calls this: its frame is the innermost of the stack.
#[inline(always)]
pub fn record_mapping(start: usize, bytes: usize, is_file: bool) {
    record_with_caller(start, bytes, is_file);
}

/// Mappings that the engine has forgotten, before the kernel removes them.
#[derive(Debug)]
#[must_use = "the kernel may not remove the mappings"]
pub struct ForgottenMapping(RemovedRanges);

impl ForgottenMapping {
    /// Forgets the mappings of a range. An empty range forgets no mapping.
    pub fn new(start: usize, bytes: usize) -> Self {
        Self(ENGINE.forget_mapping(start, bytes))
    }

    /// Whether a mapping of the range, or the mapping at the start of an empty range, has the contents of a file, as far
    /// as it was recorded.
    pub fn is_file(&self) -> bool {
        self.0.is_file
    }

    /// Records the mappings again: the kernel did not remove them.
    pub fn restore(self) {
        ENGINE.restore_mapping(&self.0);
    }
}
