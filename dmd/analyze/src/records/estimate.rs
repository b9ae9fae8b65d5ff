//! Blocks without a stack, given to the stacks of blocks that were drawn.
//!
//! Blocks of one reporter and about one size were drawn with one chance. So each stack gets, of the
//! stackless ones, the share that it has of the drawn ones. What is given adds up to what there was,
//! to the byte; of sizes that no stack is known of, nothing is given.

use rustc_hash::FxHashMap;

use super::Sums;
use crate::dump::Block;
use crate::stacks::StackId;

/// The reports of a block, and about its size.
type PoolKey = ([StackId; 2], u32);

#[derive(Debug, Default)]
struct Pool {
    stackless: Sums,
    drawn: Sums,
    /// Of the drawn blocks, those that have been given something.
    done: Sums,
    given: Sums,
}

#[derive(Debug, Default)]
pub(super) struct Estimate {
    pools: FxHashMap<PoolKey, Pool>,
}

impl Estimate {
    /// Counts blocks; all of them, before the first is asked for.
    pub(super) fn count(&mut self, block: &Block, reps: [StackId; 2]) {
        let pool = self.pools.entry((reps, size_class(block.usable()))).or_default();
        if block.alloc.index().is_some() { &mut pool.drawn } else { &mut pool.stackless }
            .add(Sums::of(block));
    }

    /// What stands for a block, and whether that is an estimate. To be called once for each block.
    pub(super) fn stand_in(&mut self, block: &Block, reps: [StackId; 2]) -> (Sums, bool) {
        let own = Sums::of(block);
        let Some(pool) = self.pools.get_mut(&(reps, size_class(block.usable()))) else { return (own, false) };
        if pool.drawn.num == 0 || pool.stackless.num == 0 {
            return (own, false);
        }
        if block.alloc.index().is_none() {
            return (Sums::default(), true);
        }
        pool.done.add(own);
        // By numbers of blocks, which are never 0 where there is something to share.
        let share = |whole| portion(whole, pool.done.num, pool.drawn.num);
        let due = Sums {
            num: share(pool.stackless.num),
            req: share(pool.stackless.req),
            slop: share(pool.stackless.slop),
        };
        let sums = Sums {
            num: own.num + due.num - pool.given.num,
            req: own.req + due.req - pool.given.req,
            slop: own.slop + due.slop - pool.given.slop,
        };
        pool.given = due;
        (sums, true)
    }
}

/// `whole * part / of`, exact for `part == of`.
fn portion(whole: i128, part: i128, of: i128) -> i128 {
    if part == of {
        return whole;
    }
    match whole.checked_mul(part) {
        Some(product) => product / of,
        None => (whole as f64 * (part as f64 / of as f64)) as i128,
    }
}

/// Four classes for each doubling of the size.
fn size_class(usable: i128) -> u32 {
    let size = u128::try_from(usable).unwrap_or_default();
    let log = size.checked_ilog2().unwrap_or_default();
    let quarter = if log < 2 { 0 } else { (size >> (log - 2)) as u32 & 3 };
    log * 4 + quarter
}
