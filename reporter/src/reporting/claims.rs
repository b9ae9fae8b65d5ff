//! With DMD: the heap bytes that a reporter claims under `explicit/`, and how many of them it claims by amount.
//!
//! A walk names blocks, and so do two kinds of amounts: what [`split`](super::Reports::split) has measured, and the
//! bytes of a [`MemoryCounter`](super::MemoryCounter) whose blocks are marked since their allocation. All other
//! amounts name none: DMD still knows their blocks as unreported.
//!
//! Invariant: each named byte covers at most one claimed byte of its reporter. An amount that a reporter computes after
//! it read a counter, or after a `split` of which it has not reported all, counts as theirs.

use std::collections::VecDeque;

use crate::engine_abi::Marks;

use super::counters;

/// Heap bytes that a report claims without a block.
#[derive(Debug)]
pub(crate) struct ByAmount {
    pub(crate) path: String,
    pub(crate) bytes: i64,
}

/// The claims of one reporter.
#[derive(Debug, Default)]
pub(crate) struct ReporterClaims {
    /// The bytes that the engine counts as claimed, with their paths.
    claimed: Vec<(Marks, i64)>,
    by_amount: Vec<ByAmount>,
    /// Bytes of blocks that no amount has claimed yet; for those of walks, with the path of the blocks' marks.
    unclaimed: VecDeque<(Option<Marks>, i64)>,
    /// The addresses of the counters whose bytes were added to `unclaimed`.
    counters: Vec<usize>,
}

impl ReporterClaims {
    /// For a reporter that begins on this thread.
    pub(crate) fn begin() -> Self {
        drop(counters::take_read());
        Self::default()
    }

    /// A report claims bytes that a walk measured. The walk named blocks of `named` bytes.
    pub(crate) fn claim_measured(&mut self, path: &str, marks: Option<Marks>, bytes: i64, named: i64) {
        self.claim(marks, bytes);
        self.add_by_amount(path, bytes.saturating_sub(named));
    }

    /// A walk measured blocks of `named` bytes together. The amounts of later reports claim these bytes.
    pub(crate) fn add_measured(&mut self, marks: Option<Marks>, named: i64) {
        self.unclaimed.push_back((marks, named));
    }

    /// A report claims an amount.
    pub(crate) fn claim_amount(&mut self, path: &str, amount: i64) {
        for (counter, bytes) in counters::take_read() {
            if !self.counters.contains(&counter) {
                self.counters.push(counter);
                self.unclaimed.push_back((None, memory_report::amount(bytes)));
            }
        }
        let mut left = amount.max(0);
        while left > 0
            && let Some((marks, bytes)) = self.unclaimed.pop_front()
        {
            let covered = left.min(bytes);
            left -= covered;
            self.claim(marks, covered);
            if bytes > covered {
                self.unclaimed.push_front((marks, bytes - covered));
            }
        }
        if left > 0 {
            // An amount marks no block.
            self.claim(Marks::for_path(path, false), left);
            self.add_by_amount(path, left);
        }
    }

    /// The bytes that the engine counts as claimed, with their paths.
    pub(crate) fn claimed(&self) -> &[(Marks, i64)] {
        &self.claimed
    }

    pub(crate) fn into_by_amount(self) -> Vec<ByAmount> {
        self.by_amount
    }

    /// Has the engine count claimed bytes at the path of the blocks' marks: a dump compares both. The blocks of counters
    /// have marks without a path, so the engine does not count their claims.
    fn claim(&mut self, marks: Option<Marks>, bytes: i64) {
        if let Some(marks) = marks
            && bytes > 0
        {
            marks.claim(bytes);
            self.claimed.push((marks, bytes));
        }
    }

    fn add_by_amount(&mut self, path: &str, bytes: i64) {
        if bytes > 0 {
            self.by_amount.push(ByAmount { path: path.to_owned(), bytes });
        }
    }
}
