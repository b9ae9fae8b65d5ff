//! Decides when a black box writes a dump, from what it sees of the memory and of its limit.
//!
//! The rules are plain arithmetic on values, without a clock and without calls of the system.

use core::time::Duration;

use dmd_format::kept_dump::DumpReason;
use memory_reporter::__private::limits::{BoundKind, MemoryBound};

/// What the box sees at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryLook {
    /// The time in nanoseconds.
    pub(super) now: u64,
    pub(super) bound: MemoryBound,
    /// The bytes that the memory group has in swap space.
    pub(super) swapped: u64,
    /// How often the kernel had to free memory for the group so far.
    pub(super) reclaims: u64,
}

/// The state at the last dump.
#[derive(Clone, Copy, Debug)]
struct LastDump {
    at: u64,
    /// The nanoseconds that the dump took.
    took: u64,
    bound: MemoryBound,
    /// The used bytes and the bytes in swap space.
    footprint: u64,
}

#[derive(Debug)]
pub(super) struct DumpTrigger {
    /// The share of the limit for the first dump, in percent.
    near: u64,
    last: Option<LastDump>,
    before: Option<MemoryLook>,
    /// The growth in bytes per second. It falls by half at each look, so that a pause does not hide a fast growth.
    rate: u64,
    /// Whether the use was clearly below the fraction since the last dump above it.
    is_armed: bool,
}

/// A limit that would be reached within this time is close.
const MOMENTS: Duration = Duration::from_millis(400);
/// The least and the largest time between two looks.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(500);
/// The growth that is always possible, in bytes per second.
const FAST: u64 = 1 << 30;
/// A dump that no growth explains comes at most once in this time.
const PAUSE: Duration = Duration::from_secs(600);

const NANOSECONDS: u64 = 1_000_000_000;

fn share(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

impl DumpTrigger {
    pub(super) fn new(near_percent: u8) -> Self {
        Self { near: near_percent.into(), last: None, before: None, rate: 0, is_armed: true }
    }

    /// The growth in bytes per second.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Whether a dump is due now.
    pub(super) fn look(&mut self, look: MemoryLook) -> Option<DumpReason> {
        let before = self.before.replace(look);
        let mut has_reclaimed = false;
        if let Some(before) = before.filter(|before| before.bound.kind == look.bound.kind) {
            let passed = look.now.saturating_sub(before.now).max(1);
            let grown = look.bound.used.saturating_sub(before.bound.used);
            let rate = u128::from(grown) * u128::from(NANOSECONDS) / u128::from(passed);
            self.rate = u64::try_from(rate).unwrap_or(u64::MAX).max(self.rate / 2);
            has_reclaimed = look.reclaims > before.reclaims;
        }
        let MemoryBound { limit, used, .. } = look.bound;
        let near = share(limit, self.near);
        if used < share(near, 95) {
            self.is_armed = true;
        }
        let footprint = used.saturating_add(look.swapped);
        // After a change of the limit, the last dump says nothing about the distance.
        let last = self.last.filter(|last| last.bound.limit == limit && last.bound.kind == look.bound.kind);
        let grown_by =
            |percent: u64| last.is_none_or(|last| footprint >= share(last.footprint, 100 + percent));
        let is_late = self.last.is_none_or(|last| look.now.saturating_sub(last.at) > PAUSE.as_nanos() as u64);
        if used >= near {
            let is_first = last.is_none_or(|last| last.bound.used < near && used > last.bound.used);
            let is_back = self.is_armed && (is_late || last.is_none_or(|last| used > last.bound.used));
            // Each halving of the rest gets a dump, up to a hundredth of the limit.
            let is_closer = last.is_some_and(|last| {
                look.bound.left() <= last.bound.left() / 2 && last.bound.left() > limit / 100
            });
            if is_first || is_back || is_closer {
                return Some(DumpReason::Limit);
            }
        }
        if self.is_busy(look.now) {
            return None;
        }
        let moments = self.last.map_or(0, |last| last.took.saturating_mul(4)).max(MOMENTS.as_nanos() as u64);
        let reach = u128::from(self.rate) * u128::from(moments) / u128::from(NANOSECONDS);
        if used >= limit / 2 && self.rate > 0 && reach >= u128::from(look.bound.left()) && grown_by(10) {
            return Some(DumpReason::Predicted);
        }
        if has_reclaimed && used >= share(near, 75) && (is_late || grown_by(10)) {
            return Some(DumpReason::Pressure);
        }
        // Other processes fill the machine, too.
        let is_own = look.bound.kind != BoundKind::Machine;
        let is_grown = match last {
            Some(last) => footprint >= share(last.footprint, 120),
            None => used >= share(near, 60),
        };
        (is_own && used >= near / 2 && is_grown).then_some(DumpReason::Growth)
    }

    /// Whether dumps would take more than a fifth of the time.
    fn is_busy(&self, now: u64) -> bool {
        self.last.is_some_and(|last| now.saturating_sub(last.at) < last.took.saturating_mul(4))
    }

    /// Notes a dump that was written for the last look, and the time that it took.
    pub(super) fn dumped(&mut self, look: MemoryLook, took: u64) {
        self.is_armed = false;
        let footprint = look.bound.used.saturating_add(look.swapped);
        self.last = Some(LastDump { at: look.now, took, bound: look.bound, footprint });
    }

    /// The time until the next look: half of the time in which fast growth would reach the next point for a dump.
    pub(super) fn wait(&self) -> Duration {
        let Some(look) = self.before else { return SHORTEST };
        let MemoryBound { limit, used, .. } = look.bound;
        let near = share(limit, self.near);
        let next = if used < near { near - used } else { look.bound.left() / 2 };
        let speed = u128::from(self.rate.saturating_mul(2).max(FAST));
        let wait = u128::from(next) * u128::from(NANOSECONDS) / speed / 2;
        let wait = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        // If the memory does not grow, a short rest is no reason for haste.
        let shortest = if self.rate < limit / 100 { SHORTEST * 5 } else { SHORTEST };
        wait.clamp(shortest, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::{DumpTrigger, MemoryLook, NANOSECONDS};
    use dmd_format::kept_dump::DumpReason;
    use memory_reporter::__private::limits::{BoundKind, MemoryBound};

    const LIMIT: u64 = 1 << 30;

    fn look(now: u64, used: u64) -> MemoryLook {
        let bound = MemoryBound { kind: BoundKind::Group, limit: LIMIT, used };
        MemoryLook { now, bound, swapped: 0, reclaims: 0 }
    }

    /// Grows to the limit with this many bytes per second. Returns the shares of the limit in percent at the dumps, with
    /// their reasons.
    fn ramp(rate: u64, dump_takes: u64) -> Vec<(u64, DumpReason)> {
        let (mut trigger, mut now, mut dumps) = (DumpTrigger::new(90), 0, Vec::new());
        loop {
            let used = u64::try_from(u128::from(rate) * u128::from(now) / u128::from(NANOSECONDS)).unwrap();
            if used >= LIMIT {
                return dumps;
            }
            let look = look(now, used);
            if let Some(reason) = trigger.look(look) {
                dumps.push((used * 100 / LIMIT, reason));
                trigger.dumped(look, dump_takes);
                now += dump_takes;
            }
            now += u64::try_from(trigger.wait().as_nanos()).unwrap();
        }
    }

    #[test]
    fn slow_growth_has_dumps_up_to_the_limit() {
        let dumps = ramp(10 << 20, 5_000_000);
        assert_eq!(dumps[0], (54, DumpReason::Growth));
        assert!(dumps.contains(&(90, DumpReason::Limit)), "{dumps:?}");
        assert!(dumps.last().unwrap().0 >= 98 && dumps.len() < 12, "{dumps:?}");
    }

    #[test]
    fn fast_growth_has_a_dump_before_the_limit() {
        for rate in [200 << 20, 1_000_000_000, 2 << 30] {
            let dumps = ramp(rate, 10_000_000);
            assert!(dumps.last().unwrap().0 >= 70, "{rate}: {dumps:?}");
        }
        assert!(ramp(1_000_000_000, 10_000_000).iter().any(|(_, reason)| *reason == DumpReason::Predicted));
    }

    #[test]
    fn memory_that_stays_has_one_dump() {
        let mut trigger = DumpTrigger::new(90);
        let high = LIMIT / 100 * 92;
        let mut dumps = 0;
        for second in 0..100_000 {
            // It swings around the fraction, but not clearly below it.
            let used = if second % 2 == 0 { high } else { LIMIT / 100 * 88 };
            let look = look(second * NANOSECONDS, used);
            if trigger.look(look).is_some() {
                trigger.dumped(look, 1);
                dumps += 1;
            }
        }
        assert_eq!(dumps, 1);
    }

    #[test]
    fn a_limit_that_changes_counts_anew() {
        let mut trigger = DumpTrigger::new(90);
        let first = look(1, LIMIT / 100 * 95);
        assert_eq!(trigger.look(first), Some(DumpReason::Limit));
        trigger.dumped(first, 1);
        assert_eq!(trigger.look(look(NANOSECONDS, LIMIT / 100 * 95)), None);
        // Below the use.
        let mut lower = look(2 * NANOSECONDS, LIMIT / 100 * 95);
        lower.bound.limit = LIMIT / 2;
        assert_eq!(trigger.look(lower), Some(DumpReason::Limit));
        trigger.dumped(lower, 1);
        assert_eq!(trigger.look(MemoryLook { now: 3 * NANOSECONDS, ..lower }), None);
        // Numbers at their ends.
        let bound = MemoryBound { kind: BoundKind::Machine, limit: u64::MAX, used: u64::MAX };
        trigger.look(MemoryLook { now: u64::MAX, bound, swapped: u64::MAX, reclaims: u64::MAX });
        trigger.look(MemoryLook { now: 0, bound, swapped: 0, reclaims: 0 });
        assert!(trigger.wait() <= super::LONGEST);
    }

    #[test]
    fn the_kernel_s_reclaim_counts_only_when_much_is_used() {
        let mut trigger = DumpTrigger::new(90);
        let at = |now, percent: u64, reclaims| MemoryLook {
            reclaims,
            ..look(now * NANOSECONDS, LIMIT / 100 * percent)
        };
        assert_eq!(trigger.look(at(1, 40, 0)), None);
        assert_eq!(trigger.look(at(2, 40, 9)), None);
        let seen = at(3, 70, 10);
        assert_eq!(trigger.look(seen), Some(DumpReason::Pressure));
        trigger.dumped(seen, 1);
        assert_eq!(trigger.look(at(4, 70, 11)), None);
    }
}
