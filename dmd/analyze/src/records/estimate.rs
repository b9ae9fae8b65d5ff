//! Distributes blocks without a stack over the stacks of recorded blocks.
//!
//! DMD recorded the stacks of all blocks of similar size and equal reports with the same probability. So a stack with a
//! tenth of the blocks that have a stack also gets a tenth of the blocks without a stack. The shares add up to the
//! exact sum in bytes. If no block of a size has a stack, the blocks of that size stay without a stack.

use rustc_hash::FxHashMap;

use super::BlockSums;
use super::stacks::CutStackId;
use crate::dump::DumpBlock;

/// The reports of a block, and its size class.
type PoolKey = ([CutStackId; 2], u32);

#[derive(Debug, Default)]
struct SizePool {
    stackless: BlockSums,
    drawn: BlockSums,
    /// The sums of the blocks with a stack that already got their share.
    done: BlockSums,
    given: BlockSums,
}

#[derive(Debug, Default)]
pub(super) struct StackEstimate {
    pools: FxHashMap<PoolKey, SizePool>,
}

impl StackEstimate {
    /// Counts a block. The caller counts all blocks before the first call of `stand_in`.
    pub(super) fn count(&mut self, block: &DumpBlock, reps: [CutStackId; 2]) {
        let pool = self.pools.entry((reps, size_class(block.usable()))).or_default();
        if block.alloc.index().is_some() { &mut pool.drawn } else { &mut pool.stackless }
            .add(BlockSums::from_block(block));
    }

    /// The sums that a block represents, and whether they are an estimate. Call this function once for each block.
    pub(super) fn stand_in(&mut self, block: &DumpBlock, reps: [CutStackId; 2]) -> (BlockSums, bool) {
        let own = BlockSums::from_block(block);
        let Some(pool) = self.pools.get_mut(&(reps, size_class(block.usable()))) else { return (own, false) };
        if pool.drawn.num == 0 || pool.stackless.num == 0 {
            return (own, false);
        }
        if block.alloc.index().is_none() {
            return (BlockSums::default(), true);
        }
        pool.done.add(own);
        // The share follows the number of blocks, because sizes may be 0.
        let share = |whole| portion(whole, pool.done.num, pool.drawn.num);
        let due = BlockSums {
            num: share(pool.stackless.num),
            req: share(pool.stackless.req),
            slop: share(pool.stackless.slop),
            swapped: share(pool.stackless.swapped),
            untouched: share(pool.stackless.untouched),
        };
        let sums = BlockSums {
            num: own.num + due.num - pool.given.num,
            req: own.req + due.req - pool.given.req,
            slop: own.slop + due.slop - pool.given.slop,
            swapped: own.swapped + due.swapped - pool.given.swapped,
            untouched: own.untouched + due.untouched - pool.given.untouched,
        };
        pool.given = due;
        (sums, true)
    }
}

/// Returns `whole * part / of`. The result is exact if `part` equals `of`.
fn portion(whole: i128, part: i128, of: i128) -> i128 {
    if part == of {
        return whole;
    }
    match whole.checked_mul(part) {
        Some(product) => product / of,
        None => (whole as f64 * (part as f64 / of as f64)) as i128,
    }
}

/// The size class: four classes for each doubling of the size.
fn size_class(usable: i128) -> u32 {
    let size = u128::try_from(usable).unwrap_or_default();
    let log = size.checked_ilog2().unwrap_or_default();
    let quarter = if log < 2 { 0 } else { (size >> (log - 2)) as u32 & 3 };
    log * 4 + quarter
}
