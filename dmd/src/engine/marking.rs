//! Marks: a reporter has measured a block.
//!
//! If the table has every live block, then a pointer outside of the table is a fault of the reporter. The caller must
//! not ask an allocator about such a pointer.

use core::sync::atomic::Ordering;

use super::{Engine, Phase};
use crate::system::errno::keeping_errno;
use crate::system::slot::{self, Inside, slot};
use crate::system::{fork, log};
use crate::tables::block_table::FoundBlock;
use crate::tables::mark::{BlockReport, FaultKind, PathId, ReportFault};
use crate::tables::runs::ReporterNumber;
use crate::tables::stack::Caller;
use crate::tables::thread;
use crate::tables::trace_id::TraceId;

/// The maximum number of unknown pointers that are printed on stderr. Further unknown pointers are only counted.
const MOST_SAID: u64 = 20;

/// The options of a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MarkOptions {
    /// Whether the mark stays until the block is freed.
    pub(crate) on_alloc: bool,
    /// Whether the address may be inside the block.
    pub(crate) enclosing: bool,
    pub(crate) allocator: OfAllocator,
}

/// The allocator of the block, as the program states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OfAllocator {
    /// The program names no allocator. An unknown pointer is a fault.
    #[default]
    Unsaid,
    /// An allocator that the engine records. An unknown pointer is a fault, and the program gets the kind of fault.
    Recorded,
    /// An allocator that the engine may not record. An unknown pointer is allowed.
    Foreign,
}

/// The result of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkOutcome {
    /// A block with these usable bytes.
    Block(usize),
    /// The table has no block at the pointer, and the caller does not get the kind of fault: the table may lack some
    /// blocks, or the allocator is not [`OfAllocator::Recorded`].
    Unknown,
    /// No live block is at the pointer.
    Fault(FaultKind),
}

impl Engine {
    /// Whether the table has every live block of the allocators that the engine records.
    pub(crate) fn knows_all(&self) -> bool {
        let is_part =
            self.setup().options.wait_for_track || self.below.load(Ordering::Relaxed) > 0 || self.mean() > 0;
        self.phase() == Phase::On && !is_part && self.dropped() == 0
    }

    /// Marks the block that starts at this address, or with `enclosing` the block that contains it. `caller` has the
    /// same meaning as in [`record`](Self::record).
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
        // A handler that interrupted an allocation marks no block: this thread may hold a lock that marking needs.
        let interrupts = slot().guard.is_set();
        let mut marking =
            self.marking.load(Ordering::Relaxed) && !interrupts && (on_alloc || self.runs.may_mark());
        if marking && !slot::has_room() {
            self.unmarked.fetch_add(1, Ordering::Relaxed);
            marking = false;
        }
        let _inside = Inside::anyway();
        let found = match self.table().get(address) {
            Some(block) => FoundBlock::Start(block),
            None if enclosing || self.knows_all() => self.table().find(address),
            None => FoundBlock::Nothing,
        };
        let (start, block) = match found {
            FoundBlock::Start(block) => (address, block),
            FoundBlock::Inside(start, block) if enclosing => (start, block),
            // Unknown pointers are faults only if the table has every block.
            _ if !self.knows_all() || allocator == OfAllocator::Foreign => return MarkOutcome::Unknown,
            _ => {
                let kind = match found {
                    FoundBlock::Inside(..) => FaultKind::Interior,
                    FoundBlock::Freed => FaultKind::Freed,
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
                let reporter = slot().reporter.get() as ReporterNumber;
                let report = BlockReport { trace: self.trace_of_report(caller), path, on_alloc, reporter };
                self.mark(start, report, || on_alloc || self.runs.may_mark());
                self.marks.count_marked(path, self.usable_of(block));
            });
        }
        MarkOutcome::Block(block.usable())
    }

    fn trace_of_report(&self, caller: Caller) -> TraceId {
        thread::with_state(|state| state.stack.trace(caller, self.tree())).unwrap_or(TraceId::NONE)
    }

    pub(super) fn mark(&self, address: usize, report: BlockReport, allowed: impl FnOnce() -> bool) {
        // A thread that does not see this value yet may free the block. Then the block's report has no effect, since
        // the bit in the table is gone.
        self.watches_frees.store(true, Ordering::SeqCst);
        let Some(fresh) = self.table().mark(address) else { return };
        if !self.marks.add(address, report, fresh, allowed) {
            self.unmarked.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn keep_fault(&self, kind: FaultKind, address: usize, path: PathId, caller: Caller) {
        keeping_errno(|| {
            let trace = self.trace_of_report(caller);
            if self.marks.fault(ReportFault { kind, address, path, trace }) <= MOST_SAID {
                let line = format_args!("Unknown pointer {address:#x}");
                // A dump or a collection lists the faults of its own reports. Any other fault is listed nowhere, so it
                // is printed.
                if slot().run.get() != 0 { log::mention(line) } else { log::say(line) }
            }
        });
    }

    /// Removes a reporter's marks for a path, or for all paths if `path` is `NONE`. Does nothing for reporter 0: its
    /// marks were made outside of a collection.
    pub(crate) fn withdraw(&self, reporter: ReporterNumber, path: PathId) {
        if reporter == 0 {
            return;
        }
        let usable = |address| self.table().get(address).map_or(0, |block| self.usable_of(block));
        self.marks.withdraw(reporter, path, usable, |address| self.table().unmark(address));
    }

    /// Removes all reports, except reports made at allocation, even if a run owns them.
    pub(crate) fn clear_reports(&self) {
        if fork::would_wait_for_itself() {
            return;
        }
        self.runs.seize(0);
        self.clear_marks();
    }

    /// Like [`clear_reports`](Self::clear_reports), for a run that owns the reports. If no report is left, it also
    /// forgets all paths. The caller holds `dumping`, since a dump names paths.
    pub(crate) fn begin_reports(&self) {
        let _inside = Inside::anyway();
        if self.clear_marks() == 0 {
            self.marks.forget_paths();
        }
    }

    /// Removes the marks, except marks made at allocation. Returns the number of blocks that still have reports.
    fn clear_marks(&self) -> usize {
        let _inside = Inside::anyway();
        let left = self.marks.clear_reports(|address| self.table().unmark(address));
        let cumulative = self.cumulative.load(Ordering::Relaxed);
        self.watches_frees.store(cumulative || left > 0, Ordering::Relaxed);
        left
    }
}
