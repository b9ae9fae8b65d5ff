//! Marks: a reporter has measured a block.
//!
//! Where the table has every live block, a pointer that it does not have is a fault of the reporter. Then the caller must
//! not ask an allocator about it.

use core::sync::atomic::Ordering;

use super::{Engine, Phase};
use crate::system::errno::keeping_errno;
use crate::system::slot::{self, Inside, slot};
use crate::system::{fork, log};
use crate::tables::block_table::Found;
use crate::tables::mark::{Fault, FaultKind, PathId, Report};
use crate::tables::runs::Reporter;
use crate::tables::stack::Caller;
use crate::tables::thread;
use crate::tables::trace_id::TraceId;

/// `log` names this many unknown pointers on stderr; further ones are only counted.
const MOST_SAID: u64 = 20;

/// How a program asks for a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MarkOptions {
    /// The mark stays until the block is freed.
    pub(crate) on_alloc: bool,
    /// The address may be inside the block.
    pub(crate) enclosing: bool,
    pub(crate) allocator: OfAllocator,
}

/// The allocator that the program says the block is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OfAllocator {
    /// The program does not say. An unknown pointer is a fault.
    #[default]
    Unsaid,
    /// One that the engine records. An unknown pointer is a fault, which the program wants to know.
    Recorded,
    /// One that the engine may not record. An unknown pointer is no fault.
    Foreign,
}

/// What the engine found at a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkOutcome {
    /// A block with these usable bytes.
    Block(usize),
    /// The table has no block there, and may lack some blocks.
    Unknown,
    /// No block is there.
    Fault(FaultKind),
}

impl Engine {
    /// Whether the table has every live block of the allocators that the engine records.
    pub(crate) fn knows_all(&self) -> bool {
        let is_part =
            self.setup().options.wait_for_track || self.below.load(Ordering::Relaxed) > 0 || self.mean() > 0;
        self.phase() == Phase::On && !is_part && self.dropped() == 0
    }

    /// Marks the block that starts here, or with `enclosing` the one around the address. `caller` as for
    /// [`record`](Self::record).
    pub(crate) fn report(
        &self,
        address: usize,
        path: PathId,
        options: MarkOptions,
        caller: Caller,
    ) -> MarkOutcome {
        if address == 0 {
            return MarkOutcome::Unknown;
        }
        let MarkOptions { on_alloc, enclosing, allocator } = options;
        // A handler that interrupted an allocation marks nothing: this thread may hold a lock that marking takes.
        let interrupts = slot().guard.is_set();
        let mut marking =
            self.marking.load(Ordering::Relaxed) && !interrupts && (on_alloc || self.runs.may_mark());
        if marking && !slot::has_room() {
            self.unmarked.fetch_add(1, Ordering::Relaxed);
            marking = false;
        }
        let _inside = Inside::anyway();
        let found = match self.table().get(address) {
            Some(block) => Found::Start(block),
            None if enclosing || self.knows_all() => self.table().find(address),
            None => Found::Nothing,
        };
        let (start, block) = match found {
            Found::Start(block) => (address, block),
            Found::Inside(start, block) if enclosing => (start, block),
            // Report unknown pointers only if the table has every block.
            _ if !self.knows_all() || allocator == OfAllocator::Foreign => return MarkOutcome::Unknown,
            _ => {
                let kind = match found {
                    Found::Inside(..) => FaultKind::Interior,
                    Found::Freed => FaultKind::Freed,
                    _ => FaultKind::NotHeap,
                };
                if marking {
                    self.keep_fault(kind, address, path, caller);
                }
                let explains = allocator == OfAllocator::Recorded;
                return if explains { MarkOutcome::Fault(kind) } else { MarkOutcome::Unknown };
            }
        };
        if marking {
            keeping_errno(|| {
                let reporter = slot().reporter.get() as Reporter;
                let report = Report { trace: self.trace_of_report(caller), path, on_alloc, reporter };
                self.mark(start, report, || on_alloc || self.runs.may_mark());
                self.marks.count_marked(path, self.usable_of(block));
            });
        }
        MarkOutcome::Block(block.usable())
    }

    fn trace_of_report(&self, caller: Caller) -> TraceId {
        thread::with_state(|state| state.stack.trace(caller, self.tree())).unwrap_or(TraceId::NONE)
    }

    pub(super) fn mark(&self, address: usize, report: Report, allowed: impl FnOnce() -> bool) {
        // A thread that does not see this yet may free the block. Then its report counts for nothing, since the bit
        // in the table is gone.
        self.watches_frees.store(true, Ordering::SeqCst);
        let Some(fresh) = self.table().mark(address) else { return };
        if !self.marks.add(address, report, fresh, allowed) {
            self.unmarked.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn keep_fault(&self, kind: FaultKind, address: usize, path: PathId, caller: Caller) {
        keeping_errno(|| {
            let trace = self.trace_of_report(caller);
            if self.marks.fault(Fault { kind, address, path, trace }) <= MOST_SAID {
                let line = format_args!("Unknown pointer {address:#x}");
                // A dump and a collection list it; a report outside of both has no place for it.
                if slot().run.get() != 0 { log::mention(line) } else { log::say(line) }
            }
        });
    }

    /// Removes a reporter's marks for a path, or for all paths if it is `NONE`. Reporter 0 has no marks.
    pub(crate) fn withdraw(&self, reporter: Reporter, path: PathId) {
        if reporter == 0 {
            return;
        }
        let usable = |address| self.table().get(address).map_or(0, |block| self.usable_of(block));
        self.marks.withdraw(reporter, path, usable, |address| self.table().unmark(address));
    }

    /// Removes all reports except those made at allocation, even if a run owns them.
    pub(crate) fn clear_reports(&self) {
        if fork::would_wait_for_itself() {
            return;
        }
        self.runs.seize(0);
        self.clear_marks();
    }

    /// [`clear_reports`](Self::clear_reports) for a run that owns them. If no report is left, forgets all paths
    /// too. The caller holds `dumping`, since a dump names paths.
    pub(crate) fn begin_reports(&self) {
        let _inside = Inside::anyway();
        if self.clear_marks() == 0 {
            self.marks.forget_paths();
        }
    }

    /// Returns how many blocks still have reports: those made at allocation.
    fn clear_marks(&self) -> usize {
        let _inside = Inside::anyway();
        let left = self.marks.clear_reports(|address| self.table().unmark(address));
        let cumulative = self.cumulative.load(Ordering::Relaxed);
        self.watches_frees.store(cumulative || left > 0, Ordering::Relaxed);
        left
    }
}
