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

/// Shows how far a request is, and cancels it. All clones belong to one request.
#[derive(Clone, Debug, Default)]
pub struct AnalysisProgress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl AnalysisProgress {
    /// The progress of a request that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// The numbers of steps done and of all steps. A step is a byte of a file to read, or one visit of a node by an
    /// analysis. Both are 0 at first, and the total grows if one analysis needs another.
    pub fn steps(&self) -> (u64, u64) {
        (self.0.done.load(Ordering::Relaxed), self.0.total.load(Ordering::Relaxed))
    }

    /// Cancels the request. The analysis notices it after a few thousand nodes.
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

/// The number of nodes between two looks at the progress, which cost more than a node.
pub(crate) const LOOK: usize = 4096;

/// Cuts a range into parts, for loops in which counting each step costs too much.
pub(crate) fn chunks(
    range: Range<usize>,
) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
    let end = range.end;
    range.step_by(LOOK).map(move |start| start..(start + LOOK).min(end))
}

/// Counts nodes for an [`AnalysisProgress`].
pub(crate) struct StepCounter<'a> {
    progress: &'a AnalysisProgress,
    until_look: usize,
}

impl<'a> StepCounter<'a> {
    /// Announces this number of steps.
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

    /// Counts the steps of a part that [`chunks`] gives, before the caller does them.
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
