//! The sampler of `--sample-bytes`: a Poisson process over the allocated bytes.
//!
//! The distances between the points of the process follow the exponential distribution, which has no memory: after a
//! chosen block, the next distance starts at the block's end. [`dmd_format::sample`] weighs the chosen blocks.

use crate::logarithm::ln;

/// Draws the distances. The seed determines all distances, so that two runs choose the same blocks.
#[derive(Clone, Debug)]
pub struct ByteSampler {
    state: u64,
    mean: u64,
    skip: u64,
}

impl ByteSampler {
    /// A sampler that chooses one byte out of `mean` on average; `mean` is at least 1.
    pub fn new(seed: u64, mean: u64) -> Self {
        let mut sampler = Self { state: seed, mean: mean.max(1), skip: 0 };
        sampler.skip = sampler.draw();
        sampler
    }

    /// Returns whether a block of this many bytes is chosen. The probability is 1 - exp(-bytes / mean).
    #[inline]
    pub fn trial(&mut self, bytes: u64) -> bool {
        let bytes = bytes.max(1);
        if self.skip > bytes {
            self.skip -= bytes;
            return false;
        }
        self.skip = self.draw();
        true
    }

    /// The sampler of the nth thread of a process with this seed. The mean distance is an argument of
    /// [`next`](Self::next).
    #[cfg_attr(not(engine = "native"), allow(dead_code, reason = "only the native engine samples"))]
    pub(crate) fn for_thread(seed: u64, n: usize) -> Self {
        Self::new(seed.wrapping_add((n as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03)), 1)
    }

    /// Draws the distance to the next chosen byte, in bytes, at least 1. `mean` is the mean distance.
    #[cfg_attr(not(engine = "native"), allow(dead_code, reason = "only the native engine samples"))]
    pub(crate) fn next(&mut self, mean: u64) -> u64 {
        self.mean = mean.max(1);
        self.draw()
    }

    fn draw(&mut self) -> u64 {
        // Vigna's SplitMix64.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // The value is above 0 and at most 1, so that the logarithm is finite.
        let unit = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        // The distance in bytes is an exponential random number, rounded up. The longest possible distance is about
        // 37 means.
        (-ln(unit) * self.mean as f64) as u64 + 1
    }
}
