//! Converts between ticks and times.

use core::time::Duration;

/// Pairs of a tick and the nanoseconds since the start of the recording. Ticks and nanoseconds ascend.
#[derive(Debug, Default)]
pub(crate) struct TickClock {
    pairs: Vec<(u64, u64)>,
    /// The nanoseconds of one tick, for ticks before the first pair and after the last pair.
    length: f64,
}

impl TickClock {
    /// Makes a clock whose ticks last this many nanoseconds.
    pub(crate) fn new(length: f64) -> Self {
        let length = if length.is_finite() && length > 0.0 { length } else { 1.0 };
        Self { pairs: Vec::new(), length }
    }

    /// Adds a pair. Ignores a pair that contradicts the last pair.
    pub(crate) fn add(&mut self, tick: u64, nanoseconds: u64) {
        if self.pairs.last().is_none_or(|last| last.0 < tick && last.1 <= nanoseconds) {
            self.pairs.push((tick, nanoseconds));
        }
    }

    /// The time of a tick. Between two pairs the time is interpolated.
    // Not inlined: the compiler would put a copy into each step of the loop in `tick`.
    #[inline(never)]
    pub(crate) fn nanoseconds(&self, tick: u64) -> u64 {
        self.map(tick, |pair| *pair, self.length)
    }

    /// The first tick that is at or after a time.
    pub(crate) fn tick(&self, nanoseconds: u64) -> u64 {
        let mut tick = self.map(nanoseconds, |(tick, nanoseconds)| (*nanoseconds, *tick), 1.0 / self.length);
        // Rounding may differ by some ticks between the two directions.
        for _ in 0..16 {
            if tick > 0 && self.nanoseconds(tick - 1) >= nanoseconds {
                tick -= 1;
            } else if self.nanoseconds(tick) < nanoseconds {
                tick += 1;
            }
        }
        tick
    }

    pub(crate) fn time(&self, tick: u64) -> Duration {
        Duration::from_nanos(self.nanoseconds(tick))
    }

    /// The number of ticks in a time span, by the mean length of a tick.
    pub(crate) fn span(&self, nanoseconds: u64) -> u64 {
        let length = match (self.pairs.first(), self.pairs.last()) {
            (Some(first), Some(last)) if first.0 < last.0 && first.1 < last.1 => {
                (last.1 - first.1) as f64 / (last.0 - first.0) as f64
            }
            _ => self.length,
        };
        (nanoseconds as f64 / length) as u64
    }

    fn map(&self, from: u64, pair: impl Fn(&(u64, u64)) -> (u64, u64), length: f64) -> u64 {
        let after = self.pairs.partition_point(|known| pair(known).0 <= from);
        let (before, after) =
            (after.checked_sub(1).map(|at| pair(&self.pairs[at])), self.pairs.get(after).map(&pair));
        match (before, after) {
            (Some(before), Some(after)) => {
                let part = (from - before.0) as f64 / (after.0 - before.0) as f64;
                before.1 + (part * (after.1 - before.1) as f64) as u64
            }
            (Some(before), None) => before.1.saturating_add(((from - before.0) as f64 * length) as u64),
            (None, Some(after)) => after.1.saturating_sub(((after.0 - from) as f64 * length) as u64),
            (None, None) => (from as f64 * length) as u64,
        }
    }
}
