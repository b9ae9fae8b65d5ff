//! Computes the blocks and bytes of each stack at the peak of the heap: those of its live blocks, minus the changes
//! since the peak.

use core::cmp::Reverse;

use crate::engine::ENGINE;
use crate::system::pages::{self, DumpMap, DumpVec};
use crate::tables::pending::BlockAmount;
use crate::tables::thread;
use crate::tables::trace_id::TraceId;

/// The live blocks of each stack, added up while a dump looks at all blocks.
pub(super) struct LiveStacks {
    amounts: DumpMap<u32, BlockAmount>,
    /// Whether memory was enough for all stacks.
    complete: bool,
}

/// The state at the peak.
pub(super) struct AtPeak {
    pub(super) sum: BlockAmount,
    /// Seconds from the start to the peak.
    pub(super) seconds: f64,
    /// The sum of the stacks differs from the peak by at most this many bytes.
    pub(super) within: u64,
    /// Stacks with bytes, the largest first.
    pub(super) stacks: DumpVec<(TraceId, BlockAmount)>,
}

impl LiveStacks {
    pub(super) fn new() -> Self {
        Self { amounts: pages::map(), complete: true }
    }

    pub(super) fn add(&mut self, trace: TraceId, amount: BlockAmount) {
        match pages::entry(&mut self.amounts, trace.0, BlockAmount::default) {
            Some(known) => *known = known.plus(amount),
            None => self.complete = false,
        }
    }

    /// Computes the state at the peak from the live blocks. `None` if memory is short.
    pub(super) fn at_peak(mut self) -> Option<AtPeak> {
        let peak = ENGINE.peak();
        let level = peak.level();
        let (mut seconds, now) = peak.seconds();
        let mut changed = BlockAmount::default();
        peak.for_each_since(level, ENGINE.tree(), |_, amount| changed = changed.plus(amount));
        thread::for_each_pending(|pending| {
            changed = pending.events().fold(changed, |sum, (_, amount)| sum.plus(amount));
        });
        if changed.bytes < 0 {
            peak.for_each_since(level, ENGINE.tree(), |trace, amount| self.add(trace, amount.negative()));
            thread::for_each_pending(|pending| {
                pending.events().for_each(|(trace, amount)| self.add(trace, amount.negative()));
            });
        } else {
            // The heap is at its peak now, so the live blocks are the blocks at the peak.
            seconds = now;
        }
        let mut stacks = pages::list();
        let mut sum = BlockAmount::default();
        #[allow(clippy::iter_over_hash_type, reason = "sorted below")]
        for (trace, amount) in &self.amounts {
            // A stack without blocks at the peak has 0 bytes. The bytes may be negative if other threads allocate or
            // free during the dump.
            if amount.bytes > 0 {
                let amount = BlockAmount { blocks: amount.blocks.max(1), ..*amount };
                sum = sum.plus(amount);
                self.complete &= pages::push(&mut stacks, (TraceId(*trace), amount));
            }
        }
        stacks.sort_unstable_by_key(|(trace, amount)| (Reverse(amount.bytes), trace.0));
        let within = peak.within(level, thread::made());
        self.complete.then_some(AtPeak { sum, seconds, within, stacks })
    }
}
