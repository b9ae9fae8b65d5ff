//! Finds the place in the program that a stack comes from, by folding frames.

use super::{FoldReason, FoldRules};
use crate::dump::CallFrame;

/// A stack, innermost frame first, without the frames that say nothing about the program.
#[derive(Clone, Debug)]
pub(crate) struct FoldedStack {
    /// The frames that a view shows, the site first.
    pub(crate) shown: Vec<usize>,
    /// The number of folded frames before the site.
    pub(crate) inner: usize,
    /// The number of folded frames after the last shown frame.
    pub(crate) outer: usize,
}

impl FoldedStack {
    /// Folds a stack. The site is the innermost frame that `folds` does not fold. If this frame called an executor,
    /// directly or not, the site is the innermost frame of a runtime or an arena: the outer functions wait for the
    /// executor, and did not ask for the block.
    ///
    /// If `folds` folds all frames, the site is again the innermost frame of a runtime or an arena. If there is no such
    /// frame, the site is the innermost frame that belongs neither to an allocator nor to a collection, or else the
    /// innermost frame that does not belong to an allocator, or else the innermost frame.
    pub(crate) fn fold(frames: &[CallFrame<'_>], folds: &FoldRules) -> Self {
        Self::with_reasons(frames.len(), |at| folds.reason(&frames[at]))
    }

    /// Folds a stack of `frames` frames. `fold` returns why a frame is folded, or `None`; see [`fold`](Self::fold).
    pub(crate) fn with_reasons(frames: usize, fold: impl Fn(usize) -> Option<FoldReason>) -> Self {
        let folded: Vec<Option<FoldReason>> = (0..frames).map(fold).collect();
        let mut shown: Vec<usize> = (0..frames).filter(|at| folded[*at].is_none()).collect();
        let executor = folded.iter().position(|fold| *fold == Some(FoldReason::Executor));
        let is_called = |site: &usize| executor.is_none_or(|executor| *site < executor);
        if frames > 0 && !shown.first().is_some_and(is_called) {
            let of_runtime = |fold: &Option<FoldReason>| {
                matches!(fold, Some(FoldReason::Arena | FoldReason::Runtime | FoldReason::Executor))
            };
            let outside = |inner: &[FoldReason]| {
                folded.iter().position(|fold| fold.is_some_and(|fold| !inner.contains(&fold)))
            };
            let site = folded
                .iter()
                .position(of_runtime)
                .or_else(|| outside(&[FoldReason::Allocator, FoldReason::Collection]))
                .or_else(|| outside(&[FoldReason::Allocator]));
            shown.insert(0, site.unwrap_or(0));
        }
        let inner = shown.first().copied().unwrap_or(0);
        let outer = shown.last().map_or(0, |last| frames - 1 - last);
        Self { shown, inner, outer }
    }

    /// The index of the site; `None` if the stack is empty.
    pub(crate) fn site(&self) -> Option<usize> {
        self.shown.first().copied()
    }
}
