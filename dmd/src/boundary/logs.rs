//! Logs of allocations, for observers in the program.

use core::sync::atomic::{AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use memory_reporter::engine_abi::{BlockRow, LOG_OF_SAMPLE, LogLimits, LogState};

use crate::boundary::sites;
use crate::engine::{ENGINE, Phase};
use crate::system::clock;
use crate::system::slot::Inside;
use crate::tables::logs::{LOGS, LogContents, LoggedAllocation, MOST};
use crate::tables::observers::ObserverPlace;
use crate::tables::thread;

/// Opens a log. Returns its number, from 1. Returns [`LOG_OF_SAMPLE`] if the engine takes a sample by bytes, and 0 if
/// the engine does not record, or if there is no room or no memory for another log.
pub(crate) extern "C" fn open(limits: LogLimits) -> u32 {
    match ENGINE.phase() {
        Phase::On => {}
        Phase::Sampling => return LOG_OF_SAMPLE,
        _ => return 0,
    }
    let _inside = Inside::deeper();
    let length = usize::try_from(limits.length).unwrap_or(usize::MAX);
    if FIRST.1.load(Ordering::Acquire) == 0 {
        let (tick, nanoseconds) = now();
        FIRST.0.store(tick, Ordering::Relaxed);
        FIRST.1.store(nanoseconds, Ordering::Release);
    }
    let Some(log) = LOGS.open(limits.probability, length, clock::ticks()) else { return 0 };
    thread::observe(ObserverPlace::Logs, &LOGS);
    log as u32 + 1
}

/// The tick and the nanoseconds when the first log was opened; 0 before the first log.
static FIRST: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// The tick and the nanoseconds of the system's monotonic clock now.
fn now() -> (u64, u64) {
    (clock::ticks(), clock::nanoseconds())
}

/// Turns ticks into nanoseconds of the system's monotonic clock, between the first log and now.
struct LogTimes {
    first: (u64, u64),
    nanoseconds_per_tick: f64,
}

impl LogTimes {
    fn until_now() -> Self {
        let (first, now) = ((FIRST.0.load(Ordering::Relaxed), FIRST.1.load(Ordering::Acquire)), now());
        let ticks = now.0.saturating_sub(first.0).max(1);
        Self { first, nanoseconds_per_tick: now.1.saturating_sub(first.1) as f64 / ticks as f64 }
    }

    fn nanoseconds(&self, tick: u64) -> u64 {
        let (first, start) = self.first;
        start + (tick.saturating_sub(first) as f64 * self.nanoseconds_per_tick) as u64
    }
}

/// The index of a log by its number.
fn index(log: u32) -> Option<usize> {
    (log as usize).checked_sub(1).filter(|log| *log < MOST)
}

/// Changes the limits of a log, for allocations from now on. Returns false and changes nothing if there is no memory
/// for them, or if the log is closed.
pub(crate) extern "C" fn limit(log: u32, limits: LogLimits) -> bool {
    let _inside = Inside::deeper();
    let Some(log) = index(log) else { return false };
    thread::hand_over_all(|_| {});
    LOGS.limit(log, limits.probability, usize::try_from(limits.length).unwrap_or(usize::MAX))
}

pub(crate) fn state(log: u32) -> LogState {
    let _inside = Inside::deeper();
    let Some(log) = index(log) else { return LogState::default() };
    thread::hand_over_all(|_| {});
    told(LOGS.state(log))
}

/// Calls `each` with the allocations of a log, and empties the log. Returns the state of the log before the call. The
/// engine does not record allocations of `each`. With `symbols`, the function first looks up the frames of all stacks
/// at once.
pub(crate) fn drain(log: u32, symbols: bool, each: &mut dyn FnMut(&BlockRow)) -> LogState {
    let _inside = Inside::deeper();
    let Some(log) = index(log) else { return LogState::default() };
    thread::hand_over_all(|_| {});
    let mut contained = LogContents::default();
    // A panic must not reach the caller, which may be another library. After a panic, the remaining entries are lost.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let list;
        (list, contained) = LOGS.drain(log);
        if symbols {
            sites::look_up(list.iter().map(|allocation| allocation.trace));
        }
        let times = LogTimes::until_now();
        for LoggedAllocation { tick, address, requested, slop, trace } in list {
            each(&BlockRow {
                address,
                requested: requested as u64,
                usable: requested as u64 + u64::from(slop),
                site: trace.0.into(),
                tick,
                nanoseconds: times.nanoseconds(tick),
            });
        }
    }));
    told(contained)
}

fn told(state: LogContents) -> LogState {
    LogState { length: state.length, overflowed: state.overflowed, lost: state.lost }
}

/// Closes a log.
pub(crate) extern "C" fn close(log: u32) {
    let _inside = Inside::deeper();
    let Some(log) = index(log) else { return };
    LOGS.close(log);
    if LOGS.any() {
        return;
    }
    thread::stop_observing(ObserverPlace::Logs);
    // Another thread may have opened a log in the meantime.
    if LOGS.any() {
        thread::observe(ObserverPlace::Logs, &LOGS);
    }
}

/// The time on the clock of the logs.
pub(crate) extern "C" fn ticks() -> u64 {
    clock::ticks()
}
