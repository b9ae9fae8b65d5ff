//! One run of one reporter, on any thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memory_report::{ReportSet, SkippedPart};

use crate::engine_abi::{MarkingRun, ReporterMarker};
use crate::measure::{Addresses, TaggedBytes};
use crate::reporting::isolation::{self, ContainedResult};
use crate::reporting::tags::Tag;
use crate::reporting::{ByAmount, Reports};

use super::admission;

/// The result of one run.
pub(super) struct RunOutcome {
    pub(super) set: ReportSet,
    pub(super) counted: Addresses,
    pub(super) tagged: TaggedBytes,
    pub(super) skipped: Vec<SkippedPart>,
    /// With DMD: the claims without blocks.
    pub(super) by_amount: Vec<ByAmount>,
    pub(super) time: Duration,
    pub(super) nested: bool,
    /// Whether other collections were refused during the run.
    pub(super) refused: bool,
    pub(super) panic: Option<String>,
}

/// The data that every reporter of a collection receives.
#[derive(Clone)]
pub(super) struct ReporterBrief {
    pub(super) process: Arc<str>,
    pub(super) anonymize: bool,
    /// The paths of the built-in reports of kind `Other`. The program's reporters must not use these paths.
    pub(super) taken: Arc<[String]>,
    pub(super) counted: Arc<Addresses>,
    /// With DMD: the run that marks blocks.
    pub(super) run: Option<MarkingRun>,
}

impl ReporterBrief {
    pub(super) fn run(
        &self,
        marker: Option<ReporterMarker>,
        name: &str,
        collect: &mut dyn FnMut(&mut Reports),
    ) -> RunOutcome {
        // Blocks that reporters allocate get no tag.
        let _untagged = Tag::NONE.enter();
        let mut out = Reports::new(name, &self.process, self.anonymize, &self.taken, &self.counted, marker);
        let refused_before = admission::refused();
        let entered = marker.map(ReporterMarker::enter);
        let start = Instant::now();
        let ContainedResult { result, nested } = isolation::as_reporter(|| collect(&mut out));
        let time = start.elapsed();
        if result.is_err() {
            out.withdraw();
        }
        drop(entered);
        let refused = admission::refused() != refused_before;
        let (set, state, by_amount) = out.into_parts();
        let (counted, tagged, skipped) = state.into_parts();
        RunOutcome { set, counted, tagged, skipped, by_amount, time, nested, refused, panic: result.err() }
    }
}
