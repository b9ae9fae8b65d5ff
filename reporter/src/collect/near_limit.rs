//! Runs the memory-pressure hooks shortly before the process reaches the limit of its memory.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use crate::platform::{self, MemoryUse};
use crate::reporting::isolation;

/// The effect of the hooks that ran near the limit. Its `Display` is a line for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PressureRelief {
    /// The limit in bytes: of a memory group (cgroup), of the address space or of the machine.
    pub limit: u64,
    /// The bytes that counted towards the limit before the hooks ran.
    pub before: u64,
    /// The bytes that counted towards the limit afterwards.
    pub after: u64,
    /// The time that the hooks and the allocator took.
    pub duration: Duration,
}

impl fmt::Display for PressureRelief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, before, after, duration } = self;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(
            f,
            "memory pressure: {} of {} MiB used, {} MiB after the hooks, which took {} ms",
            mib(*before),
            mib(*limit),
            mib(*after),
            duration.as_millis()
        )
    }
}

/// The time between two looks at the memory.
const PERIOD: Duration = Duration::from_millis(250);
/// The time after which the hooks run again if the use has stayed above the share.
const AGAIN: Duration = Duration::from_secs(60);
/// The use must fall this many percent below the share before the hooks run at once again.
const BELOW: u64 = 5;

/// Ends the calls near the limit when dropped. Hooks that run at that time continue.
#[must_use = "the calls end when the registration is dropped; to keep them, call `forever`"]
pub struct NearLimitRegistration {
    /// The thread ends when this end of the channel is gone.
    _end: Sender<()>,
}

impl NearLimitRegistration {
    /// Keeps the calls until the process ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl fmt::Debug for NearLimitRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearLimitRegistration").finish_non_exhaustive()
    }
}

/// Starts a thread that calls `minimize` near the limit.
pub(super) fn start(
    percent: u8,
    minimize: fn(),
    log: Box<dyn Fn(&PressureRelief) + Send + Sync>,
) -> io::Result<NearLimitRegistration> {
    if !(1..=99).contains(&percent) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the share is not 1 to 99 percent"));
    }
    if platform::memory_use().is_none() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (end, ended) = channel();
    platform::spawn("memory-pressure", Box::new(move || watch(percent.into(), minimize, &*log, &ended)))?;
    Ok(NearLimitRegistration { _end: end })
}

fn watch(percent: u64, minimize: fn(), log: &dyn Fn(&PressureRelief), ended: &Receiver<()>) {
    let mut last: Option<Instant> = None;
    while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        let Some(MemoryUse { limit, used }) = platform::memory_use() else { continue };
        let is_above = |percent: u64| u128::from(used) * 100 >= u128::from(limit) * u128::from(percent);
        if !is_above(percent.saturating_sub(BELOW)) {
            last = None;
        }
        if !is_above(percent) || last.is_some_and(|last| last.elapsed() < AGAIN) {
            continue;
        }
        let start = Instant::now();
        minimize();
        last = Some(Instant::now());
        let after = platform::memory_use().map_or(used, |now| now.used);
        let relief = PressureRelief { limit, before: used, after, duration: start.elapsed() };
        // The panic hook has already reported a panic.
        let _ = isolation::contain(|| log(&relief));
    }
}
