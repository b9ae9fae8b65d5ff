//! Detects when the heap falls from a peak that is high enough for a copy of the process.
//!
//! If each new peak were copied, a growing heap would be copied at each step. So a copy waits until the sum has fallen
//! by one part in 256: at that time, nearly all blocks of the peak are still live. At the end of a function, the values
//! that lead to most of the heap often end early, so a later copy would lack them. The peak must also be higher than the
//! sum at the last copy. [`GROWTH_SHIFT`] and [`DEAR_GROWTH_SHIFT`] determine how much higher.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The smallest peak, in bytes, that is copied before the process ends.
const FIRST: u64 = 64 << 10;

/// A peak is copied when the heap has fallen by one part in 2^`FALL_SHIFT` of the peak.
const FALL_SHIFT: u32 = 8;

/// The next copied peak is at least one part in 2^`GROWTH_SHIFT` higher than the last copied sum. While copies are not
/// cheap, it is at least one part in 2^`DEAR_GROWTH_SHIFT` higher.
const GROWTH_SHIFT: u32 = 5;
const DEAR_GROWTH_SHIFT: u32 = 2;

/// Decides when a copy is made. All zero at first.
pub(crate) struct PeakFall {
    /// The smallest peak, in bytes, at which a copy is made; 0 if the engine makes no copies at peaks.
    wanted_from: AtomicU64,
    /// The heap has fallen from its peak when its sum is below this many bytes. 0 if the heap has not reached the
    /// smallest peak for a copy since the last copy.
    below: AtomicI64,
    fallen: AtomicBool,
    /// The sum at the last copy, in bytes.
    copied: AtomicU64,
}

impl PeakFall {
    pub(super) const fn new() -> Self {
        Self {
            wanted_from: AtomicU64::new(0),
            below: AtomicI64::new(0),
            fallen: AtomicBool::new(false),
            copied: AtomicU64::new(0),
        }
    }

    /// Detects falls from now on.
    pub(crate) fn watch(&self) {
        self.wanted_from.store(FIRST, Ordering::Relaxed);
    }

    /// Records that the heap has reached a new peak.
    #[inline]
    pub(super) fn reached(&self, peak: u64) {
        let from = self.wanted_from.load(Ordering::Relaxed);
        if from != 0 && peak >= from {
            self.below.store((peak - (peak >> FALL_SHIFT)) as i64, Ordering::Relaxed);
        }
    }

    /// Records a sum of the heap that is not a new peak.
    #[inline]
    pub(super) fn at(&self, sum: i64) {
        if sum < self.below.load(Ordering::Relaxed) {
            self.fallen.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the heap has fallen, and no thread has started to make the copy.
    #[inline(always)]
    pub(crate) fn has_happened(&self) -> bool {
        self.fallen.load(Ordering::Relaxed)
    }

    /// Returns true in the one thread that must make the copy. If copies are not cheap now, the peak must be much higher
    /// than the last copied sum.
    pub(crate) fn take(&self, is_cheap: bool) -> bool {
        if !self.fallen.swap(false, Ordering::Relaxed) {
            return false;
        }
        let below = self.below.swap(0, Ordering::Relaxed) as u64;
        let copied = self.copied.load(Ordering::Relaxed);
        below != 0 && (is_cheap || below >= copied + (copied >> DEAR_GROWTH_SHIFT))
    }

    /// Records that a copy was made, or failed, while the sum was `bytes`.
    pub(crate) fn copied(&self, bytes: u64) {
        self.copied.store(bytes, Ordering::Relaxed);
        // 0 means that the engine makes no copies at peaks. A copy for a request does not change that.
        if self.wanted_from.load(Ordering::Relaxed) != 0 {
            self.wanted_from.store((bytes + (bytes >> GROWTH_SHIFT)).max(FIRST), Ordering::Relaxed);
        }
    }

    /// Whether a copy at the end of the process, with this sum, is better than the last copy.
    pub(crate) fn wants_end(&self, sum: u64) -> bool {
        self.below.load(Ordering::Relaxed) != 0 || sum > self.copied.load(Ordering::Relaxed)
    }
}
