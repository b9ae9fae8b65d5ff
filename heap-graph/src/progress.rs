//! The progress of an analysis, and its cancellation.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The error of an analysis that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an error without details")]
pub struct CancelledError;

impl fmt::Display for CancelledError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for CancelledError {}

/// Shows the progress of a request, and can cancel it. All clones belong to the same request.
#[derive(Clone, Debug, Default)]
pub struct AnalysisProgress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl AnalysisProgress {
    /// The progress of a request that has not started.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of finished steps and the number of all steps. A step is a byte of a file, or one visit of a node
    /// by an analysis. Both numbers are 0 at first. The total grows if one analysis needs another.
    pub fn steps(&self) -> (u64, u64) {
        (self.0.done.load(Ordering::Relaxed), self.0.total.load(Ordering::Relaxed))
    }

    /// Cancels the request. An analysis stops after a few thousand nodes, and the reader of a snapshot at its next
    /// read of the file.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the request was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn expect(&self, steps: u64) {
        self.0.total.fetch_add(steps, Ordering::Relaxed);
    }

    pub(crate) fn did(&self, steps: u64) {
        self.0.done.fetch_add(steps, Ordering::Relaxed);
    }
}

/// The number of nodes between two updates of the progress. An update takes longer than a visit of a node.
pub(crate) const LOOK: usize = 4096;

/// Splits a range into parts, for loops in which counting every step costs too much.
pub(crate) fn chunks(
    range: Range<usize>,
) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
    let end = range.end;
    range.step_by(LOOK).map(move |start| start..(start + LOOK).min(end))
}

/// Counts steps for an [`AnalysisProgress`].
pub(crate) struct StepCounter<'a> {
    progress: &'a AnalysisProgress,
    until_look: usize,
}

impl<'a> StepCounter<'a> {
    /// Adds this number of steps to the total.
    pub(crate) fn new(progress: &'a AnalysisProgress, steps: usize) -> Self {
        progress.expect(steps as u64);
        Self { progress, until_look: LOOK }
    }

    /// Counts one step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), CancelledError> {
        self.until_look -= 1;
        match self.until_look {
            0 => self.look(),
            _ => Ok(()),
        }
    }

    /// Counts the steps of a part from [`chunks`], before the caller performs them.
    pub(crate) fn steps(&mut self, count: usize) -> Result<(), CancelledError> {
        self.progress.did(count as u64);
        match self.progress.is_cancelled() {
            true => Err(CancelledError),
            false => Ok(()),
        }
    }

    #[cold]
    fn look(&mut self) -> Result<(), CancelledError> {
        self.progress.did(LOOK as u64);
        self.until_look = LOOK;
        match self.progress.is_cancelled() {
            true => Err(CancelledError),
            false => Ok(()),
        }
    }
}

impl Drop for StepCounter<'_> {
    fn drop(&mut self) {
        self.progress.did((LOOK - self.until_look) as u64);
    }
}
