//! Records that a block ends or moves. Hooks call the engine before the allocator frees or moves the block. If the
//! allocator did not move the block, they roll the move back.

use core::sync::atomic::Ordering;

use super::Engine;
use crate::system::memory;
use crate::tables::block_table::{BlockWord, TableBlock};
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::mark::{BlockReport, BlockReports, FaultKind, ReportFault};
use crate::tables::statistics::BlockEnd;
use crate::tables::{observers, thread};

/// A block that moves from one address to another, with its reports. A hook begins the move before the allocator moves
/// the block, and then commits the move or rolls it back.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct BlockMove(Option<(usize, TableBlock, BlockReports)>);

impl BlockMove {
    /// Whether the block had a record.
    #[inline(always)]
    pub fn has_block(&self) -> bool {
        self.0.is_some()
    }
}

impl core::fmt::Debug for BlockMove {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("BlockMove").field(&self.0.map(|(address, ..)| address)).finish()
    }
}

impl Engine {
    /// Forgets the block that starts at this address. Call this before the allocator frees the block: after the free,
    /// another thread may already have a block at the address.
    #[inline(always)]
    pub(crate) fn forget(&self, address: usize) {
        if self.has_no_record(address) {
            return;
        }
        // Most allocators then read the word before the block. The prefetch lets the wait for this word overlap with
        // the wait for the table.
        memory::prefetch(core::ptr::without_provenance::<u8>(address.wrapping_sub(8)));
        if self.watches_frees.load(Ordering::Relaxed) {
            self.forget_watched(address);
        } else if self.remove_simple(address, BlockEnd::Freed).is_none() {
            self.remove_other(address, BlockEnd::Freed);
        }
    }

    #[cold]
    fn forget_watched(&self, address: usize) {
        self.commit_move(self.take(address, BlockEnd::Freed));
    }

    /// Forgets the block that starts at this address, and counts its end. Returns `None` and changes nothing if the
    /// block needs [`remove_other`](Self::remove_other).
    #[inline(always)]
    fn remove_simple(&self, address: usize, end: BlockEnd) -> Option<BlockWord> {
        let _inside = Self::enter_with_room()?;
        let lease = thread::lease()?;
        let word = self.table().remove_word(address)?;
        if lease.pending.end(address, word, end) {
            lease.settle(self.peak().allowance());
            if self.peak().fall.has_happened() {
                self.copy_at_fall(address, word.block());
            }
        }
        Some(word)
    }

    /// Like [`remove_simple`](Self::remove_simple), for any block. Returns the block.
    #[inline(never)]
    fn remove_other(&self, address: usize, end: BlockEnd) -> Option<TableBlock> {
        let block = self.table().remove(address)?;
        self.forget_sample(address, block);
        let ended = Self::enter_with_room().and_then(|_inside| {
            thread::with_lease(|lease| {
                let amount = self.amount(block);
                let event = || TableEvent::now(address, EventKind::Ended(end), self.counted(block));
                lease.settle_after(self.peak().allowance(), event, |pending| {
                    pending.end_other(address, block.trace, amount, end);
                });
            })
        });
        if ended.is_none() {
            observers::observe_alone(address, EventKind::Ended(end), self.counted(block));
            self.end_alone(block, end);
        } else if self.peak().fall.has_happened() {
            self.copy_at_fall(address, block);
        }
        Some(block)
    }

    /// Forgets the block that starts at this address, before the allocator moves the block.
    #[inline]
    pub(crate) fn begin_move(&self, address: usize) -> BlockMove {
        if self.has_no_record(address) { BlockMove(None) } else { self.take(address, BlockEnd::Moved) }
    }

    #[inline(never)]
    fn take(&self, address: usize, end: BlockEnd) -> BlockMove {
        let removed = self.remove_simple(address, end).map(BlockWord::block);
        BlockMove(removed.or_else(|| self.remove_other(address, end)).map(|block| {
            let reports = if block.marked { self.remove_marks(address) } else { BlockReports::default() };
            (address, block, reports)
        }))
    }

    #[cold]
    fn remove_marks(&self, address: usize) -> BlockReports {
        // If the stack has no room, the marks stay. They have no effect then, since the block's bit in the table is
        // gone.
        Self::enter_with_room().map_or_else(BlockReports::default, |_inside| self.marks.remove(address))
    }

    /// Completes a move: the allocator moved the block, and the old address is free.
    #[inline]
    pub(crate) fn commit_move(&self, begun: BlockMove) {
        let Some((address, block, reports)) = begun.0 else { return };
        if !self.watches_frees.load(Ordering::Relaxed) {
            return;
        }
        let Some(_inside) = Self::enter_with_room() else {
            if self.cumulative.load(Ordering::Relaxed) {
                self.drop_dead_block();
            }
            return;
        };
        self.bury(block);
        // A mark made at allocation ends with the block. A reporter that made a mark later still refers to the
        // freed block.
        for report in reports.iter().flatten().filter(|report| !report.on_alloc) {
            let BlockReport { path, trace, .. } = *report;
            self.marks.fault(ReportFault { kind: FaultKind::FreedSince, address, path, trace });
        }
    }

    /// Undoes a move: the allocator left the block where it was.
    pub(crate) fn roll_back_move(&self, begun: BlockMove) {
        let Some((address, block, reports)) = begun.0 else { return };
        if self.insert_again(address, block) {
            self.counts.roll_back();
            self.count_alone(block, self.amount(block));
            self.observe_back(address, block);
        } else {
            self.drop_block();
        }
        if reports[0].is_none() {
            return;
        }
        let Some(_inside) = Self::enter_with_room() else {
            self.unmarked.fetch_add(1, Ordering::Relaxed);
            return;
        };
        for report in reports.into_iter().flatten() {
            self.mark(address, report, || true);
        }
    }

    #[cold]
    fn observe_back(&self, address: usize, block: TableBlock) {
        let observed = Self::enter_with_room().and_then(|_inside| {
            let event = || TableEvent::now(address, EventKind::CameBack, self.counted(block));
            thread::with_lease(|lease| lease.observe(event))
        });
        if observed.is_none() {
            observers::observe_alone(address, EventKind::CameBack, self.counted(block));
        }
    }

    pub(super) fn bury(&self, block: TableBlock) {
        if self.cumulative.load(Ordering::Relaxed) && !self.dead.count(self.counted(block)) {
            self.drop_dead_block();
        }
    }
}
