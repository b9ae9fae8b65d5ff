//! Facts about a dump that is a sample by bytes.

use dmd_format::sample;

/// A sample that DMD took with `--sample-bytes`. All amounts of the dump are unbiased estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ByteSample {
    /// The mean distance between the sampled points, in bytes.
    pub mean: u64,
    /// The number of blocks that DMD recorded.
    pub recorded: u64,
    /// The standard error of the sum of all blocks' usable bytes, in bytes.
    pub standard_error: f64,
}

impl ByteSample {
    /// The maximum standard error of an amount of `bytes` bytes in this sample, in bytes.
    pub fn largest_error(&self, bytes: u64) -> f64 {
        sample::largest_error(bytes, self.mean)
    }
}
