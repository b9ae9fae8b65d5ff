//! The functions that the hooks of mappings in `libdmd.so` call.

use super::with_caller::with_caller;
use crate::engine::ENGINE;
use crate::tables::mappings::MappedRange;
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

/// A mapping that the engine has forgotten, before the kernel removes it.
#[derive(Debug)]
#[must_use = "the kernel may not remove the mapping"]
pub struct ForgottenMapping(Option<MappedRange>);

impl ForgottenMapping {
    /// Forgets a mapping.
    pub fn new(start: usize, bytes: usize) -> Self {
        Self(ENGINE.forget_mapping(start, bytes))
    }

    /// Whether the mapping has the contents of a file, as far as it was recorded.
    pub fn is_file(&self) -> bool {
        self.0.is_some_and(|range| range.is_file)
    }

    /// Records the mapping again, if [`was_recorded`](Self::was_recorded) is true: the kernel did not remove it.
    pub fn restore(self) {
        if let Some(range) = self.0 {
            ENGINE.restore_mapping(range);
        }
    }
}
