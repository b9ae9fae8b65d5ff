//! The functions that the hooks of mappings in `libdmd.so` call.

use super::with_caller::with_caller;
use crate::engine::ENGINE;
use crate::tables::stack::Caller;
use crate::tables::trace_id::TraceId;

with_caller!(
    /// Records a mapping.
    record_with_caller(start: usize, bytes: usize) => record_for, ["rdx", "rcx"], ["x2", "x3"]
);

extern "C" fn record_for(start: usize, bytes: usize, place: usize, fp: usize) {
    ENGINE.record_mapping(start, bytes, Caller::new(place, fp));
}

/// Records a mapping. The hook itself calls this: its frame is the innermost of the stack.
#[inline(always)]
pub fn record_mapping(start: usize, bytes: usize) {
    record_with_caller(start, bytes);
}

/// A mapping that the engine has forgotten, before the kernel removes it.
#[derive(Debug)]
#[must_use = "if the kernel does not remove the mapping, call `restore`"]
pub struct ForgottenMapping {
    start: usize,
    bytes: usize,
    trace: Option<TraceId>,
}

impl ForgottenMapping {
    /// Forgets a mapping.
    pub fn new(start: usize, bytes: usize) -> Self {
        Self { start, bytes, trace: ENGINE.forget_mapping(start, bytes) }
    }

    /// Whether the engine had recorded the whole mapping, with one stack.
    pub fn was_recorded(&self) -> bool {
        self.trace.is_some()
    }

    /// Records the mapping again, if [`was_recorded`](Self::was_recorded) is true: the kernel did not remove it.
    pub fn restore(self) {
        if let Some(trace) = self.trace {
            ENGINE.restore_mapping(self.start, self.bytes, trace);
        }
    }
}
