//! Firefox's Bernoulli sampler: it chooses the blocks that get a stack under `--stacks=partial`.
//!
//! Each usable byte has the same chance, so a block of n bytes gets a stack with probability 1-(1-p)^n. The seeds
//! are fixed, so two runs choose the same blocks. The first thread has Firefox's seeds, so a program with one thread
//! gets the stacks that Firefox would take.

use crate::logarithm::ln;

/// The probability with which one usable byte selects its block.
pub(crate) const CHANCE: f64 = 0.003;
const SEEDS: (u64, u64) = (0x8e26_eeee_166b_c8ca, 0x5682_0f30_4a9c_9ae0);

/// Decides for each block whether to take its stack, mostly at the cost of one subtraction.
#[derive(Clone, Debug)]
pub struct Sampler {
    state: (u64, u64),
    skip: usize,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampler {
    /// A sampler with Firefox's seeds.
    pub fn new() -> Self {
        Self::seeded(SEEDS)
    }

    /// The sampler of the nth thread. Thread 0 uses Firefox's seeds, other threads use their own seeds.
    #[cfg_attr(not(engine = "native"), allow(dead_code, reason = "only the native engine samples"))]
    pub(crate) fn for_thread(n: usize) -> Self {
        let turn = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self::seeded((SEEDS.0 ^ turn, SEEDS.1 ^ turn.rotate_left(32)))
    }

    fn seeded(state: (u64, u64)) -> Self {
        let mut sampler = Self { state, skip: 0 };
        sampler.skip = sampler.draw();
        sampler
    }

    /// Whether a block of this many usable bytes is chosen.
    #[inline]
    pub fn trial(&mut self, bytes: usize) -> bool {
        if self.skip > bytes {
            self.skip -= bytes;
            return false;
        }
        self.skip = self.draw();
        true
    }

    /// The number of bytes to pass over until the next choice.
    pub fn skip(&self) -> usize {
        self.skip
    }

    #[cold]
    fn draw(&mut self) -> usize {
        let (a, b) = self.state;
        let mut next = a;
        next ^= next << 23;
        next = next ^ b ^ (next >> 17) ^ (b >> 26);
        self.state = (b, next);
        let low = next.wrapping_add(b) & ((1 << 53) - 1);
        let unit = low as f64 / (1u64 << 53) as f64;
        // A unit of 0 gives infinity, which the conversion turns into the largest number.
        (ln(unit) / ln(1.0 - CHANCE)) as usize
    }
}
