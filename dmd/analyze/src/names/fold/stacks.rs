//! Folds the stacks of a dump.

use super::{FoldRules, FoldedStack};
use crate::dump::{CallId, Dump, DumpTraceId};
use crate::names::allocators::AllocatorFrames;

impl Dump {
    /// Drops frames that say nothing about the program from all stacks: the allocator frames at the start of each stack
    /// and, in a dump of the crate `dmd`, the frames that `folds` folds. A stack that consists only of such frames
    /// keeps one frame.
    ///
    /// Compute views that need whole stacks, such as [`types`](Self::types), before this call.
    pub fn fold(&mut self, folds: &FoldRules) {
        let has_modules = self.has_modules();
        let which = if has_modules { AllocatorFrames::CAndRust } else { AllocatorFrames::C };
        let dropped: Vec<bool> = self.frames.ids().map(|id| which.has(self.frames.text(id))).collect();
        let folded: Vec<_> = match has_modules {
            true => self.frames.ids().map(|id| folds.reason(&self.frames.get(id))).collect(),
            false => Vec::new(),
        };
        let mut calls = Vec::with_capacity(self.calls.len());
        for trace in 0..self.traces.len() {
            let start = calls.len() as u32;
            let all: &[CallId] = self.trace(DumpTraceId(trace as u32));
            let inner = all.iter().take_while(|id| dropped[id.index()]).count();
            if has_modules {
                let FoldedStack { shown, .. } =
                    FoldedStack::with_reasons(all.len(), |at| folded[all[at].index()]);
                let kept = match &shown[shown.partition_point(|at| *at < inner)..] {
                    [] => &shown[..],
                    kept => kept,
                };
                calls.extend(kept.iter().map(|at| all[*at]));
            } else {
                calls.extend_from_slice(if inner < all.len() {
                    &all[inner..]
                } else {
                    &all[..all.len().min(1)]
                });
            }
            self.traces[trace] = start..calls.len() as u32;
        }
        self.calls = calls;
    }
}
