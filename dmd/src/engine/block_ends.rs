//! A block ends, or moves: hooks say so before the allocator frees or moves it, and take a move back that the allocator did not make.

use core::sync::atomic::Ordering;

use super::Engine;
use crate::system::memory;
use crate::tables::block_table::{Block, Word};
use crate::tables::events::{Event, Happened};
use crate::tables::mark::{Fault, FaultKind, Report, Reports};
use crate::tables::statistics::End;
use crate::tables::{observers, thread};

/// A block on its way from one address to another, with its reports. A hook begins the move before the allocator
/// moves the block, and then commits it or rolls it back.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct BlockMove(Option<(usize, Block, Reports)>);

impl core::fmt::Debug for BlockMove {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("BlockMove").field(&self.0.map(|(address, ..)| address)).finish()
    }
}

impl Engine {
    /// Forgets the block that starts here. Callers do so before they free it: otherwise another thread could get
    /// the address in between.
    #[inline(always)]
    pub(crate) fn forget(&self, address: usize) {
        if self.has_no_record(address) {
            return;
        }
        // Most allocators look in front of the block next. Both waits for memory overlap.
        memory::prefetch(core::ptr::without_provenance::<u8>(address.wrapping_sub(8)));
        if self.watches_frees.load(Ordering::Relaxed) {
            self.forget_watched(address);
        } else if self.remove_simple(address, End::Freed).is_none() {
            self.remove_other(address, End::Freed);
        }
    }

    #[cold]
    fn forget_watched(&self, address: usize) {
        self.commit_move(self.take(address, End::Freed));
    }

    /// Forgets the block that starts here, and counts its end. `None`, and nothing changes, if that is not simple.
    #[inline(always)]
    fn remove_simple(&self, address: usize, end: End) -> Option<Word> {
        let _inside = Self::enter_with_room()?;
        let lease = thread::lease()?;
        let word = self.table().remove_word(address)?;
        if lease.pending.end(address, word, end) {
            lease.settle(self.peak().allowance());
        }
        Some(word)
    }

    /// [`remove_simple`](Self::remove_simple) for any block, which it returns.
    #[inline(never)]
    fn remove_other(&self, address: usize, end: End) -> Option<Block> {
        let block = self.table().remove(address)?;
        self.forget_sample(address, block);
        let ended = Self::enter_with_room().and_then(|_inside| {
            thread::with_lease(|lease| {
                let amount = self.amount(block);
                let event = || Event::now(address, Happened::Ended(end), self.counted(block));
                lease.settle_after(self.peak().allowance(), event, |pending| {
                    pending.end_other(address, block.trace, amount, end);
                });
            })
        });
        if ended.is_none() {
            observers::observe_alone(address, Happened::Ended(end), self.counted(block));
            self.end_alone(block, end);
        }
        Some(block)
    }

    /// Forgets the block that starts here, before the allocator moves it.
    #[inline]
    pub(crate) fn begin_move(&self, address: usize) -> BlockMove {
        if self.has_no_record(address) { BlockMove(None) } else { self.take(address, End::Moved) }
    }

    #[inline(never)]
    fn take(&self, address: usize, end: End) -> BlockMove {
        let removed = self.remove_simple(address, end).map(Word::block);
        BlockMove(removed.or_else(|| self.remove_other(address, end)).map(|block| {
            let reports = if block.marked { self.remove_marks(address) } else { Reports::default() };
            (address, block, reports)
        }))
    }

    #[cold]
    fn remove_marks(&self, address: usize) -> Reports {
        // Marks that stay belong to no block, since the bit in the table is gone.
        Self::enter_with_room().map_or_else(Reports::default, |_inside| self.marks.remove(address))
    }

    /// The allocator moved the block: nothing is left at its old address.
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
            let Report { path, trace, .. } = *report;
            self.marks.fault(Fault { kind: FaultKind::FreedSince, address, path, trace });
        }
    }

    /// The allocator left the block where it was.
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
    fn observe_back(&self, address: usize, block: Block) {
        let observed = Self::enter_with_room().and_then(|_inside| {
            let event = || Event::now(address, Happened::CameBack, self.counted(block));
            thread::with_lease(|lease| lease.observe(event))
        });
        if observed.is_none() {
            observers::observe_alone(address, Happened::CameBack, self.counted(block));
        }
    }

    pub(super) fn bury(&self, block: Block) {
        if self.cumulative.load(Ordering::Relaxed) && !self.dead.count(self.counted(block)) {
            self.drop_dead_block();
        }
    }
}
