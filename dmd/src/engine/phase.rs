//! The state of the engine: whether it records. Hooks and other processes read it.

use core::sync::atomic::{AtomicU8, Ordering};

use dmd_format::tables::RECORDS_ALL;

use super::Engine;

/// The state of the engine. Hooks compare the numbers: in each phase below [`Sampling`](Self::Sampling), the engine
/// takes no sample by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// No hook has read the options yet.
    Undecided = 0,
    /// The engine never records.
    Off = 1,
    /// The engine records every block, or all large blocks and a sample of the small blocks.
    On = RECORDS_ALL,
    /// The engine is starting. It records nothing yet.
    Starting = 3,
    /// The engine records a sample by bytes.
    Sampling = 4,
    /// The engine records nothing until a request asks for it.
    Waiting = 5,
    /// The engine is starting because of a request. It records nothing yet.
    StartingSession = 6,
}

/// The phase of the engine.
pub(super) struct AtomicPhase(AtomicU8);

impl AtomicPhase {
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(Phase::Undecided as u8))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Undecided,
            RECORDS_ALL => Phase::On,
            3 => Phase::Starting,
            4 => Phase::Sampling,
            5 => Phase::Waiting,
            6 => Phase::StartingSession,
            _ => Phase::Off,
        }
    }

    /// Whether the number of the current phase is less than the number of `phase`.
    #[inline(always)]
    pub(super) fn is_before(&self, phase: Phase) -> bool {
        self.0.load(Ordering::Relaxed) < phase as u8
    }

    pub(super) fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// Changes the phase to `to` if it is `from`. Returns true in the one thread that changed it.
    pub(super) fn change(&self, from: Phase, to: Phase) -> bool {
        let changed = self.0.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok()
    }

    /// The phase as a number, for readers outside of the process.
    pub(super) const fn number(&self) -> &AtomicU8 {
        &self.0
    }
}

impl Engine {
    #[inline(always)]
    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether the engine records blocks now.
    pub(crate) fn records(&self) -> bool {
        matches!(self.phase(), Phase::On | Phase::Sampling)
    }

    /// Whether the phase is below [`Phase::Sampling`]. If such an engine records, it takes no sample by bytes.
    #[inline(always)]
    pub(super) fn records_all(&self) -> bool {
        self.phase.is_before(Phase::Sampling)
    }

    /// Decides that the engine records nothing.
    pub(crate) fn switch_off(&self) {
        self.phase.set(Phase::Off);
    }
}
