//! The bytes that the program frees before its end: in the last part of the time, the heap only shrinks.

use super::replay::{BlockEnd, ReplayObserver, ReplayedBlock};

/// The heap counts as shrinking as long as no growth exceeds a small part of its peak (`1 / RIPPLE`).
const RIPPLE: u128 = 64;

/// Finds the time after which the heap only shrank, in one replay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DescentObserver {
    /// Usable bytes.
    now: u128,
    peak: u128,
    /// The highest sum since the heap last grew.
    high: u128,
    /// The lowest sum since the heap had the sum `high`.
    low: u128,
    /// The last sum near `high`, and its tick.
    last: (u128, u64),
}

impl DescentObserver {
    /// The bytes that the last descent freed, and the tick before its start.
    pub(crate) fn freed(&self) -> (u128, u64) {
        (self.last.0.saturating_sub(self.now), self.last.1)
    }

    #[inline]
    fn reach(&mut self, now: u128, tick: u64) {
        self.now = now;
        self.peak = self.peak.max(now);
        let ripple = self.peak / RIPPLE;
        if now >= self.high || now > self.low + ripple {
            (self.high, self.low) = (now, now);
        }
        self.low = self.low.min(now);
        if now + ripple >= self.high {
            self.last = (now, tick);
        }
    }
}

impl ReplayObserver for DescentObserver {
    fn began(&mut self, tick: u64, block: &ReplayedBlock, _: bool) {
        self.reach(self.now + u128::from(block.usable()), tick);
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        self.reach(self.now.saturating_sub(u128::from(block.usable())), end.tick);
    }
}
