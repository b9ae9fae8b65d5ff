//! An engine that waits for requests, and its sessions: requests switch recording on and off in a running process.
//!
//! A block that the program allocated before a session is not in the table, so its end changes nothing.

use core::sync::atomic::Ordering;

use super::phase::Phase;
use super::sampling::{LARGEST_MEAN, NO_SESSION};
use super::{Engine, SAMPLED};
use crate::options::Options;
use crate::system::slot::Inside;
#[cfg(target_os = "linux")]
use crate::tables::mappings::MAPPINGS;
use crate::tables::pending::PendingEvents;
use crate::tables::{observers, thread};

impl Engine {
    /// Starts to record, or to wait for a request, as the options require.
    pub(super) fn begin(&self, options: Options) {
        if options.wait_for_track {
            return self.set_phase(Phase::Waiting, 0);
        }
        self.record_every(options.sample_bytes);
    }

    fn record_every(&self, mean: Option<usize>) {
        match mean {
            Some(mean) => {
                // Blocks that were recorded before the options were known are not part of the sample.
                self.table().release();
                #[cfg(target_os = "linux")]
                MAPPINGS.hold().clear();
                SAMPLED.clear();
                self.set_phase(Phase::Sampling, mean.min(LARGEST_MEAN));
            }
            None => self.set_phase(Phase::On, 0),
        }
    }

    fn set_phase(&self, phase: Phase, mean: usize) {
        self.mean.store(mean, Ordering::Relaxed);
        let session = if phase == Phase::Sampling { self.next_session() } else { NO_SESSION };
        // A thread that reads the new session number samples from then on.
        self.session.store(session, Ordering::Relaxed);
        self.phase.set(phase);
    }

    /// The number of a new session. No slot has this number yet; it is neither 0 nor [`NO_SESSION`].
    fn next_session(&self) -> u32 {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed).wrapping_add(2);
        if number <= NO_SESSION { NO_SESSION + 1 } else { number }
    }

    /// Starts to record in a process that waits for a request: a sample by bytes, or every block if `mean` is `None`.
    /// Returns false if the engine does not wait, because it records or is off. Also returns false for a sample while
    /// an observer is on: a log would list the sampled blocks as if they were all allocations. Blocks from before the
    /// call stay unknown.
    pub(crate) fn start_tracking(&self, mean: Option<usize>) -> bool {
        // Wait for the end of a dump, since a dump reads the table.
        let _dumping = self.dumping.hold();
        if mean.is_some() && observers::any() {
            return false;
        }
        if !self.phase.change(Phase::Waiting, Phase::StartingSession) {
            return false;
        }
        let _inside = Inside::deeper();
        self.forget_all();
        self.full.store(true, Ordering::Relaxed);
        self.record_every(mean);
        true
    }

    /// Ends a session of [`start_tracking`](Self::start_tracking), and gives the memory of the table back.
    pub(crate) fn stop_tracking(&self) {
        if !self.setup().options.wait_for_track || !self.records() {
            return;
        }
        let _dumping = self.dumping.hold();
        let _inside = Inside::deeper();
        self.set_phase(Phase::Waiting, 0);
        self.forget_all();
    }

    /// Forgets all blocks and counts. A thread in the middle of recording may still add its block. The start of the
    /// next session calls this function again, and so forgets that block.
    fn forget_all(&self) {
        self.table().release();
        SAMPLED.clear();
        self.counts.clear();
        thread::for_each_pending(PendingEvents::clear);
        self.peak().clear(self.tree());
        // Between two sessions, the program may remove a mapping, and the kernel may give its addresses out again.
        #[cfg(target_os = "linux")]
        MAPPINGS.hold().clear();
    }
}
