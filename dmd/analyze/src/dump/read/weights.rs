//! Computes the weights of blocks in a dump that is a sample by bytes.

use dmd_format::sample;

use crate::dump::DumpBlock;
use crate::dump::sample::ByteSample;

/// The largest mean distance that DMD accepts, in bytes.
pub(super) const LARGEST_MEAN: u64 = 1 << 40;

/// The maximum sum of all blocks, in bytes. It leaves room in 128 bits for sums of several dumps.
const MOST: f64 = (1_u128 << 120) as f64;

/// Sets the weights of a sample's blocks; `mean` is the mean distance in bytes. `None` if the sum of all blocks is too
/// large.
pub(super) fn weigh(blocks: &mut [DumpBlock], mean: u64) -> Option<ByteSample> {
    let (mut recorded, mut bytes, mut variance) = (0_u64, 0.0, 0.0);
    for block in blocks {
        block.weight = sample::weight(block.req, mean);
        block.sampled = block.weight > 1.0;
        let (num, usable) = (block.num as f64, block.usable() as f64);
        recorded = recorded.saturating_add(block.num);
        bytes += num * block.weight * usable.max(1.0);
        variance += num * sample::variance(block.req, mean) * usable * usable;
    }
    (bytes < MOST).then_some(ByteSample { mean, recorded, standard_error: variance.sqrt() })
}
