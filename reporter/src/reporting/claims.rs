//! With DMD: the heap bytes that a reporter claims under `explicit/`, and the part of these bytes whose blocks are
//! unknown.
//!
//! A walk names blocks. The blocks of two kinds of amounts are also known: amounts that
//! [`split`](super::Reports::split) has measured, and the bytes of a [`MemoryCounter`](super::MemoryCounter) whose
//! blocks have been marked since their allocation. The blocks of all other amounts are unknown, so DMD still lists
//! these blocks as unreported.
//!
//! Invariant: each byte of a named block covers at most one claimed byte of its reporter. After a reporter has called
//! `split` or read a counter, its next amounts claim the bytes of these blocks, the oldest first, until all of these
//! bytes are claimed.

use std::collections::VecDeque;

use crate::engine_abi::Marks;

use super::counters;

/// Heap bytes that a report claims without blocks.
#[derive(Debug)]
pub(crate) struct ByAmount {
    pub(crate) path: String,
    pub(crate) bytes: i64,
}

/// The claims of one reporter.
#[derive(Debug, Default)]
pub(crate) struct ReporterClaims {
    /// The bytes that the engine counts as claimed, with the marks of their paths.
    claimed: Vec<(Marks, i64)>,
    by_amount: Vec<ByAmount>,
    /// The bytes of blocks that no amount has claimed yet. For blocks that `split` measured, also the marks, whose path
    /// is the reporter's name.
    unclaimed: VecDeque<(Option<Marks>, i64)>,
    /// The addresses of the counters whose bytes are already in `unclaimed`.
    counters: Vec<usize>,
}

impl ReporterClaims {
    /// The claims of a reporter that starts on this thread. Forgets the counters that earlier reporters have read.
    pub(crate) fn begin() -> Self {
        drop(counters::take_read());
        Self::default()
    }

    /// Claims bytes that a walk measured. The walk named blocks of `named` bytes.
    pub(crate) fn claim_measured(&mut self, path: &str, marks: Option<Marks>, bytes: i64, named: i64) {
        self.claim(marks, bytes);
        self.add_by_amount(path, bytes.saturating_sub(named));
    }

    /// Adds blocks of `named` bytes that a walk measured. The amounts of later reports claim these bytes.
    pub(crate) fn add_measured(&mut self, marks: Option<Marks>, named: i64) {
        self.unclaimed.push_back((marks, named));
    }

    /// Claims an amount.
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
            // These marks only claim bytes and mark no block, so `records` does not matter.
            self.claim(Marks::for_path(path, false), left);
            self.add_by_amount(path, left);
        }
    }

    /// The bytes that the engine counts as claimed, with the marks of their paths.
    pub(crate) fn claimed(&self) -> &[(Marks, i64)] {
        &self.claimed
    }

    pub(crate) fn into_by_amount(self) -> Vec<ByAmount> {
        self.by_amount
    }

    /// Adds claimed bytes to the engine's count for the path of the blocks' marks. A dump contains the claimed and the
    /// marked bytes of each path. The blocks of counters have marks without a path, so the engine does not count claims
    /// for them.
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
