//! The facts of a dump about its sample by bytes.

use dmd_format::sample;

/// A sample that DMD drew with `--sample-bytes`. All amounts of its dump are estimates, without bias.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ByteSample {
    /// The mean distance of the points of the sample, in bytes.
    pub mean: u64,
    /// The blocks that DMD recorded.
    pub recorded: u64,
    /// The standard error of the sum of all blocks' usable bytes, in bytes.
    pub standard_error: f64,
}

impl ByteSample {
    /// A bound on the standard error of an amount of this sample, both in bytes.
    pub fn largest_error(&self, bytes: u64) -> f64 {
        sample::largest_error(bytes, self.mean)
    }
}
