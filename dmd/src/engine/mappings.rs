//! Records the mappings that the program makes itself.

use super::Engine;
use crate::system::slot::{self, Inside};
use crate::tables::mappings::{MAPPINGS, MappedRange};
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

    /// Forgets a mapping before the kernel removes it. Returns the mapping if it was recorded as a whole.
    #[inline(never)]
    pub(crate) fn forget_mapping(&self, start: usize, bytes: usize) -> Option<MappedRange> {
        if !self.records() || !slot::has_room() {
            return None;
        }
        // The kernel refuses a range that no program can have.
        let end = start.checked_add(bytes).filter(|end| *end <= MOST_ADDRESS)?;
        let _inside = Inside::enter()?;
        MAPPINGS.hold().remove(start, end)
    }

    /// Records a mapping again, because the kernel did not remove it.
    pub(crate) fn restore_mapping(&self, range: MappedRange) {
        if let Some(_inside) = Self::enter_with_room() {
            MAPPINGS.hold().add(range);
        }
    }
}
