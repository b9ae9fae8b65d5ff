//! Records the mappings that the program makes itself.

use super::Engine;
use crate::system::slot::{self, Inside};
use crate::tables::mappings::{MAPPINGS, MappedRange, RemovedRanges};
use crate::tables::stack::Caller;
use crate::tables::thread;
use crate::tables::trace_id::TraceId;

/// The end of the addresses of programs, on processors with the longest addresses.
const MOST_ADDRESS: usize = 1 << 56;

impl Engine {
    /// Records a mapping. `caller` is the hook.
    #[inline(never)]
    pub(crate) fn record_mapping(&self, start: usize, bytes: usize, is_file: bool, caller: Caller) {
        if !self.records() || !slot::has_room() {
            return;
        }
        let Some(_inside) = Inside::enter() else { return };
        let trace = thread::with_state(|state| state.stack.trace(caller, self.tree()));
        let (end, trace) = (start.saturating_add(bytes), trace.unwrap_or(TraceId::NONE));
        MAPPINGS.hold().add(MappedRange { start, end, trace, is_file });
    }

    /// Forgets the mappings of a range before the kernel removes them. An empty range forgets no mapping.
    #[inline(never)]
    pub(crate) fn forget_mapping(&self, start: usize, bytes: usize) -> RemovedRanges {
        if !self.records() || !slot::has_room() {
            return RemovedRanges::default();
        }
        // The kernel refuses a range that no program can have.
        let Some(end) = start.checked_add(bytes).filter(|end| *end <= MOST_ADDRESS) else {
            return RemovedRanges::default();
        };
        let Some(_inside) = Inside::enter() else { return RemovedRanges::default() };
        MAPPINGS.hold().remove(start, end)
    }

    /// Records mappings again, because the kernel did not remove them.
    pub(crate) fn restore_mapping(&self, removed: &RemovedRanges) {
        if let Some(_inside) = Self::enter_with_room() {
            let mut table = MAPPINGS.hold();
            removed.iter().for_each(|range| table.add(range));
        }
    }
}
