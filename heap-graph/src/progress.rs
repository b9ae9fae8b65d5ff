//! How far an analysis is, and whether anybody still wants it.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Nobody wants the answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// How far a request is, and whether it is still wanted; clones are shared with whoever waits.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// A request that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Steps done, and steps there are: bytes of a file that is read, nodes of a graph in an analysis, each
    /// as often as it is gone through. 0 of 0 until that is known; more become known where one analysis needs
    /// another.
    pub fn steps(&self) -> (u64, u64) {
        (self.0.done.load(Ordering::Relaxed), self.0.total.load(Ordering::Relaxed))
    }

    /// Says that nobody wants the answer any more. Whoever works on it looks every few thousand nodes.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
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

/// Nodes between two looks: a look is cheap, but not as cheap as a node.
pub(crate) const LOOK: usize = 4096;

/// A range in parts, for loops too hot to count each step.
pub(crate) fn chunks(
    range: Range<usize>,
) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
    let end = range.end;
    range.step_by(LOOK).map(move |start| start..(start + LOOK).min(end))
}

/// Counts nodes for a [`Progress`].
pub(crate) struct Steps<'a> {
    progress: &'a Progress,
    until_look: usize,
}

impl<'a> Steps<'a> {
    /// So many steps are to be done.
    pub(crate) fn new(progress: &'a Progress, steps: usize) -> Self {
        progress.expect(steps as u64);
        Self { progress, until_look: LOOK }
    }

    /// One more is done.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Cancelled> {
        self.until_look -= 1;
        match self.until_look {
            0 => self.look(),
            _ => Ok(()),
        }
    }

    /// So many are about to be done: those of a part that [`chunks`] gives.
    pub(crate) fn steps(&mut self, count: usize) -> Result<(), Cancelled> {
        self.progress.did(count as u64);
        match self.progress.is_cancelled() {
            true => Err(Cancelled),
            false => Ok(()),
        }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Cancelled> {
        self.progress.did(LOOK as u64);
        self.until_look = LOOK;
        match self.progress.is_cancelled() {
            true => Err(Cancelled),
            false => Ok(()),
        }
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        self.progress.did((LOOK - self.until_look) as u64);
    }
}
