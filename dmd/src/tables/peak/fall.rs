//! Notices that the heap falls from a peak of which a copy of the process is wanted.
//!
//! A copy at each new peak would be one at each step of a heap that grows. So the copy waits until the sum has fallen by
//! a 64th, when nearly all blocks of the peak are still there, and until the peak is a part higher than that of the last copy.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The smallest peak in bytes of which there is a copy before the process ends.
const FIRST: u64 = 64 << 10;

/// Logarithm of the part of a peak by which the heap falls before it is copied.
const FALL_SHIFT: u32 = 6;

/// Logarithms of the part by which the next peak is higher: while copies cost little, and otherwise.
const GROWTH_SHIFT: u32 = 4;
const DEAR_GROWTH_SHIFT: u32 = 2;

/// All zero while no copy is wanted.
pub(crate) struct PeakFall {
    /// The peak in bytes from which on a copy is wanted; 0 for never.
    wanted_from: AtomicU64,
    /// The sum in bytes below which the heap has fallen from such a peak; 0 if there was none since the last copy.
    below: AtomicI64,
    fallen: AtomicBool,
    /// The bytes of the last copy.
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

    /// Notices falls from now on.
    pub(crate) fn watch(&self) {
        self.wanted_from.store(FIRST, Ordering::Relaxed);
    }

    /// The heap has reached a new peak.
    #[inline]
    pub(super) fn reached(&self, peak: u64) {
        let from = self.wanted_from.load(Ordering::Relaxed);
        if from != 0 && peak >= from {
            self.below.store((peak - (peak >> FALL_SHIFT)) as i64, Ordering::Relaxed);
        }
    }

    /// The heap has this sum, which is no new peak.
    #[inline]
    pub(super) fn at(&self, sum: i64) {
        if sum < self.below.load(Ordering::Relaxed) {
            self.fallen.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the heap has fallen, and no thread makes the copy yet.
    #[inline(always)]
    pub(crate) fn has_happened(&self) -> bool {
        self.fallen.load(Ordering::Relaxed)
    }

    /// Whether this thread is the one to make the copy.
    pub(crate) fn take(&self) -> bool {
        self.fallen.swap(false, Ordering::Relaxed) && self.below.swap(0, Ordering::Relaxed) != 0
    }

    /// There is a copy of this many bytes, or none could be made of them.
    pub(crate) fn copied(&self, bytes: u64, is_cheap: bool) {
        let shift = if is_cheap { GROWTH_SHIFT } else { DEAR_GROWTH_SHIFT };
        self.copied.store(bytes, Ordering::Relaxed);
        // 0 means that nobody watches: a copy at a requested time does not start that.
        if self.wanted_from.load(Ordering::Relaxed) != 0 {
            self.wanted_from.store((bytes + (bytes >> shift)).max(FIRST), Ordering::Relaxed);
        }
    }

    /// Whether a copy of this sum at the end of the process is better than the last one.
    pub(crate) fn wants_end(&self, sum: u64) -> bool {
        self.below.load(Ordering::Relaxed) != 0 || sum > self.copied.load(Ordering::Relaxed)
    }
}
